// Every visible text with less than 4.5:1 against what is painted below it, as "ratio text".
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const over = ([r, g, b, a], below) => [r, g, b].map((value, at) => (value * a) / 255 + below[at] * (1 - a / 255));
  const ground = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(colour(getComputedStyle(at).backgroundColor));
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const node = walker.currentNode.parentElement;
    if (!text || !node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (node.closest(".unseen, .skip, .emoji, noscript, [aria-hidden=true]")) continue;
    const below = ground(node);
    const [a, b] = [light(over(colour(getComputedStyle(node).color), below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${text.slice(0, 40)}`);
  }
  return poor;
}
