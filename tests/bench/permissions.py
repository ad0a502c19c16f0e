"""python -m tests.bench.permissions: what it costs to judge one command, by the cases and by the worst that fits."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from harness_core.permissions.against import forget
from harness_core.permissions.paths import World
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.rules import check_rules

CASES = Path(__file__).resolve().parents[1] / "cases" / "shell_cases.jsonl"
WORLD = World("/ws", "/home/dev")
DENY = (PermissionRule.deny("bash", "rm *"), PermissionRule.deny("bash", "git push *"), PermissionRule.allow("bash"))
MANY = (
    *(PermissionRule.deny("bash", f"program{number} *") for number in range(11)),
    *(PermissionRule.ask("bash", f"git verb{number} *") for number in range(11)),
    *(PermissionRule.allow("bash", f"npm run script{number} *") for number in range(11)),
)
Rules = tuple[PermissionRule, ...]
LENGTH = 10_000  # characters; longer commands are not read

WORST = {
    "a chain of &&": "ls && " * (LENGTH // 6 - 1) + "ls",
    "a pipeline": "cat | " * (LENGTH // 6 - 1) + "cat",
    "many words": "ls " + "a " * (LENGTH // 2 - 2),
    "many globs": "ls " + "[a]*b " * (LENGTH // 6 - 2),
    "quotes": "echo " + "'a'\"b\"" * (LENGTH // 6 - 2),
    "subshells": "(" * (LENGTH // 2) + ")" * (LENGTH // 2),
    "substitutions": "echo " + "$(echo " * (LENGTH // 8 - 2) + ")" * (LENGTH // 8 - 2),
    "negations": "! " * (LENGTH // 2 - 2) + "ls",
    "backticks": "echo " + "`a`" * (LENGTH // 3 - 3),
    "shells in shells": "bash -c " * (LENGTH // 8 - 1) + "x",
    "wrappers": "env " * (LENGTH // 4 - 1) + "x",
    "strings": "echo " + '"$(a)" ' * (LENGTH // 7 - 1),
    "unclosed": "rm '" + "a " * (LENGTH // 2 - 3),
    "braces": "echo " + "{a" * (LENGTH // 4) + "}" * (LENGTH // 4),
    "a carried word": "foo " + "rm " * (LENGTH // 3 - 2),
    "carried pieces": "foo " + "-O'rm x' " * (LENGTH // 9 - 1),
    "options of two": "bwrap " + "--bind / / " * (LENGTH // 11 - 1),
    "git options": "git " + "-c a " * (LENGTH // 5 - 1),
    "assignments": "a=(" * (LENGTH // 3),
    "backticks that end nowhere": ",`<" * (LENGTH // 3),
    "a pipeline that ends nowhere": "a|" * (LENGTH // 2),
    "actions": "find . " + "-exec " * (LENGTH // 6 - 2),
    "unclosed substitutions": "let '" + "$(a" * (LENGTH // 3 - 3) + "'",
    "here-documents": "<<A " * (LENGTH // 4),
    "many parts": "a;" * (LENGTH // 2),
    "brackets": "[ a ];" * (LENGTH // 6 - 1),
    "one bracket": "[ " + "a " * (LENGTH // 2 - 2) + "]",
    "different programs": "; ".join(f"p{number}" for number in range(LENGTH // 8)),
    "different texts": "; ".join(f"eval 'a{number} x'" for number in range(LENGTH // 16)),
    "texts in texts": "watch " * (LENGTH // 6 - 1) + "x",
    "locks": "flock -c x " * (LENGTH // 11 - 1) + "x",
    "groups": "sg -c " * (LENGTH // 6 - 1) + "x",
    "verbs in verbs": "pixi " + "-e run " * (LENGTH // 7 - 1),
    "panes": "tmux " + "-c new " * (LENGTH // 7 - 1),
    "ends of options": "capsh " + "-- " * (LENGTH // 3 - 3),
    "shells of others": "sudo -s " + "--x a " * (LENGTH // 6 - 2),
    "strings with commas": 'echo "$(echo a,{' * (LENGTH // 18) + "x" + ')"' * (LENGTH // 18),
    "words with commas": "echo " + 'a,{x"$(a ' * (LENGTH // 11 - 1) + ')"' * (LENGTH // 11 - 1),
    "braces before a long word": "echo " + "{a,b}" * 6 + "'a'" * (LENGTH // 3 - 12),
    "words of many braces": "echo " + ("{a,b}" * 6 + "ccccc ") * (LENGTH // 36 - 1),
    "texts that are trapped": "; ".join(f"trap a{number}" for number in range(LENGTH // 11)),
    "digits for sed": "sed '" + "i386" * (LENGTH // 4 - 2) + "'",
    "lines for make": "make '" + "\n" * (LENGTH - 7) + "'",
    "calls of perl": "perl -e '" + "exec" * (LENGTH // 4 - 3) + "'",
    "prints of awk": "awk '{" + "print a " * (LENGTH // 8 - 2) + "}'",
    "an open string of awk": "awk '" + '\\"' * (LENGTH // 2 - 4) + "'",
    "delimiters of sed": "sed '"
    + "".join(f"s{chr(33 + at % 90)}" for at in range(LENGTH // 2 - 4)).replace("'", "")
    + "'",
    "a call and blanks": "perl -e 'run" + " " * (LENGTH - 13) + "'",
    "faults": "( -c x " * (LENGTH // 7),
    "faults in a row": 'git ) |"a" ' * (LENGTH // 11),
}


def milliseconds(work: Callable[[], object], times: int) -> float:
    """The best of several runs, with nothing kept from the one before."""
    found = []
    for _ in range(times):
        forget()
        began = time.thread_time()  # what it costs, not what others on the machine take meanwhile
        work()
        found.append((time.thread_time() - began) * 1000)
    return min(found)


def cost(command: str, rules: Rules) -> float:
    """Milliseconds to judge this command."""
    return milliseconds(lambda: check_rules(rules, "bash", {"command": command}, WORLD), 5)


def main() -> None:
    """Print the costs."""
    commands = [json.loads(line)["command"] for line in CASES.read_text(encoding="utf-8").splitlines()]
    named: tuple[tuple[str, Rules], ...] = (("no rules", ()), ("two deny rules", DENY), ("33 rules", MANY))
    for name, rules in named:
        costs = sorted(cost(command, rules) for command in commands)
        late = costs[len(costs) * 99 // 100]
        print(f"{len(costs)} cases, {name}: median {median(costs):.3f} ms, 99% {late:.2f}, most {costs[-1]:.2f}")
    for name, command in WORST.items():
        plain, denied, many = cost(command, ()), cost(command, DENY), cost(command, MANY)
        print(f"{name:24} {len(command):6} characters: {plain:7.2f} ms, deny rules {denied:7.2f}, 33 rules {many:7.2f}")


if __name__ == "__main__":
    main()
