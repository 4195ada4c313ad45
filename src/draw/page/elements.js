// Making elements, for all who show something. Texts of the map go in by textContent alone.

function buildElement(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// A word of the text: its direction does not touch its neighbours.
function buildLabel(text) {
  return buildElement("bdi", { textContent: text });
}

const LEAST_IN_SIGHT = 120; // pixels

// Brings what is far within a scroller to its middle; the page itself stays where it is.
function bringIntoSight(scroller, ...elements) {
  const { top, left, right, bottom: end } = scroller.getBoundingClientRect();
  const seen = Math.min(end, innerHeight); // a scroller may reach below the window
  const area = { top, left, right, bottom: seen - top < LEAST_IN_SIGHT ? end : seen, width: right - left };
  area.height = area.bottom - area.top;
  for (const element of elements) {
    if (!element || element.hidden) continue;
    const place = element.getBoundingClientRect();
    const isOutsideDown = place.top < area.top || place.bottom > area.bottom;
    const isOutsideRight = place.left < area.left || place.right > area.right;
    if (isOutsideDown && place.height < area.height) scroller.scrollTop += place.top - area.top - area.height / 2;
    if (isOutsideRight && place.width < area.width) scroller.scrollLeft += place.left - area.left - area.width / 2;
  }
}
