"use strict";
(() => {
  const limit = {{limit}}; // characters of the text
  const press = (name) => document.querySelector(`[data-key="${name}"]`)?.click();

  // Keys of the whole page, also where the editor or a frame has the focus.
  function keys(event) {
    const name = { s: "save", Enter: "run", ".": "stop" }[event.key];
    if (!name || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    press(name);
  }
  addEventListener("keydown", keys, true);
  document.addEventListener("load", (event) => {
    if (!event.target.matches?.("iframe")) return;
    event.target.contentWindow.addEventListener("keydown", keys, true);
    place();
  }, true);

  // The pose that was dragged to, in the picture it belongs to; that may still be loading.
  let dragged = null;
  function place() {
    const frame = document.querySelector("iframe[data-key=pose]")?.contentWindow;
    if (dragged && frame?.location.pathname.endsWith(dragged.view)) frame.page?.place(dragged.values);
  }
  window.placeMechanism = (view, values) => { dragged = { view, values }; place(); };

  // A text that is too long for one message would be lost on its way to the server.
  for (const kind of ["paste", "drop"]) {
    document.addEventListener(kind, (event) => {
      const text = (event.clipboardData || event.dataTransfer)?.getData("text") ?? "";
      if (text.length <= limit) return;
      event.preventDefault();
      event.stopPropagation();
      emitEvent("too_long"); // to the server, which says so
    }, true);
  }

  addEventListener("beforeunload", (event) => { if (window.unsaved) event.preventDefault(); });

  // The editor has no name of its own for those who cannot see it.
  new MutationObserver(() => {
    document.querySelector("[data-key=editor] .cm-content:not([aria-label])")?.setAttribute("aria-label", "Text of the model file; Escape then Tab leaves it");
  }).observe(document, { childList: true, subtree: true });
})();
