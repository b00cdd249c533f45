// A slider of ipywidgets has no name, and tells a screen reader its position alone ("20.00"). From here on each one has
// its label as its name, and says what stands beside it ("60 µs").
(() => {
  const text = (slider, part) => slider.querySelector(part)?.textContent.trim() ?? ''
  const set = (handle, name, value) => {
    if (value && handle.getAttribute(name) !== value) handle.setAttribute(name, value)
  }
  const speak = slider => {
    const handle = slider.querySelector('[role=slider]')
    if (!handle) return
    set(handle, 'aria-label', text(slider, '.widget-label'))
    set(handle, 'aria-valuetext', text(slider, '.widget-readout'))
  }
  const learn = () => {
    for (const slider of document.querySelectorAll('.widget-slider:not([data-speaks])')) {
      slider.dataset.speaks = 'yes'
      const watch = {subtree: true, childList: true, characterData: true, attributeFilter: ['aria-valuetext']}
      new MutationObserver(() => speak(slider)).observe(slider, watch)
      speak(slider)
    }
  }
  learn()
  if (window.edlLabsSpeaks) return
  window.edlLabsSpeaks = new MutationObserver(learn)
  window.edlLabsSpeaks.observe(document.body, {subtree: true, childList: true})
})()
