// The drawing library listens to the mouse only. One finger acts as the mouse, and two fingers zoom.

export function listenToTouch(canvas) {
  let distance = 0;
  const send = (type, touch, buttons) => {
    const options = { clientX: touch.clientX, clientY: touch.clientY, buttons, bubbles: true, cancelable: true };
    canvas.dispatchEvent(new MouseEvent(type, options));
  };
  const spread = ([a, b]) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  canvas.addEventListener(
    "touchstart",
    (event) => {
      if (event.touches.length === 1) {
        send("mousemove", event.touches[0], 0);
        send("mousedown", event.touches[0], 1);
      } else if (event.touches.length === 2) {
        send("mouseup", event.touches[0], 0);
        distance = spread(event.touches);
      }
    },
    { passive: true },
  );
  canvas.addEventListener(
    "touchmove",
    (event) => {
      event.preventDefault();
      if (event.touches.length === 1) send("mousemove", event.touches[0], 1);
      else if (event.touches.length === 2) {
        const now = spread(event.touches);
        const [a, b] = event.touches;
        const middle = { clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2 };
        const deltaY = -Math.log(now / distance) * canvas.clientHeight; // the library zooms by exp(delta / height)
        canvas.dispatchEvent(new WheelEvent("wheel", { ...middle, deltaY, bubbles: true, cancelable: true }));
        distance = now;
      }
    },
    { passive: false },
  );
  // The system cancels a touch, for example, for a gesture of its own or for a dialog.
  for (const type of ["touchend", "touchcancel"])
    canvas.addEventListener(type, (event) => send("mouseup", event.changedTouches[0], 0), { passive: true });
}
