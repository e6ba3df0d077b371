// Keys that work anywhere on the page, except while text is typed.

export function listenToKeys({ slider, search, clear, reset, theme, help, lasso }) {
  const actions = {
    ArrowLeft: () => slider.step(-1),
    ArrowDown: () => slider.step(-1),
    ArrowRight: () => slider.step(1),
    ArrowUp: () => slider.step(1),
    Home: () => slider.go(0),
    End: () => slider.go(slider.last),
    "/": () => search.input.focus(),
    r: reset,
    d: () => theme.toggle(),
    l: lasso,
    "?": help,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      clear();
      return;
    }
    const action = actions[event.key];
    if (!action || usesKey(event.target, event.key)) return;
    event.preventDefault();
    action();
  });
}

// Whether the element with the focus needs the key itself.
function usesKey(target, key) {
  if (target.id === "slider") return false;
  if (target.matches("input[type=search], input[type=text], textarea")) return true;
  const moves = key.startsWith("Arrow") || key === "Home" || key === "End";
  if (target.matches("select")) return moves || /^[a-z]$/.test(key);
  // Vertical arrows scroll, wherever there is something to scroll.
  return (
    moves &&
    (target.matches("input[type=range]") || (/Up|Down|Home|End/.test(key) && target.closest(".scrolls") !== null))
  );
}
