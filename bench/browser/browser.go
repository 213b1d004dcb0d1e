// Package browser drives a real Chromium, as people use the page of graphd.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// ErrNoChromium says that this machine has no browser.
var ErrNoChromium = errors.New("there is no chromium (apt-get install chromium)")

// Browser is a process of Chromium.
type Browser struct {
	ctx  context.Context //nolint:containedctx // chromedp keeps the browser in it
	stop func()
}

// Start starts a browser by the name or path of its program. It ends by Stop.
func Start(ctx context.Context, program string) (*Browser, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, ErrNoChromium
	}
	ctx, stop := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.Flag("disable-background-networking", true))
	ctx, stopFirst := chromedp.NewContext(ctx)
	b := &Browser{ctx: ctx, stop: func() { stopFirst(); stop() }}
	if err := chromedp.Do(ctx); err != nil {
		b.Stop()
		return nil, fmt.Errorf("the browser does not start: %w", err)
	}
	return b, nil
}

// Stop ends the browser and its tabs.
func (b *Browser) Stop() { b.stop() }

// Tab is a page of a person of its own: it shares no cache, cookie or storage with others.
type Tab struct {
	ctx   context.Context //nolint:containedctx // chromedp keeps the tab in it
	close func()
}

// patience is how long a tab may take to what is waited for.
const patience = 30 * time.Second

// OpenTab opens an empty tab.
func (b *Browser) OpenTab() (*Tab, error) {
	ctx, closeTab := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t := &Tab{ctx, closeTab}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900)); err != nil {
		closeTab()
		return nil, err
	}
	return t, nil
}

// Close closes the tab.
func (t *Tab) Close() { t.close() }

// Open loads an address, and returns when that has begun.
func (t *Tab) Open(url string) error {
	return chromedp.Do(t.ctx, chromedp.Navigate(url))
}

// WaitUntil waits until an expression of JavaScript holds when a frame is drawn. It returns the
// time of that, and how long it is after the begin of the page.
func (t *Tab) WaitUntil(expression string) (at time.Time, age time.Duration, err error) {
	age, err = t.wait(expression)
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("the page: %s: %w", expression, err)
	}
	began, err := chromedp.Run(t.ctx, chromedp.Evaluate[float64]("performance.timeOrigin"))
	return time.UnixMicro(int64(began * 1e3)).Add(age), age, err
}

func (t *Tab) wait(expression string) (time.Duration, error) {
	milliseconds, err := chromedp.Run(t.ctx, chromedp.Poll[float64]("("+expression+") && performance.now()", chromedp.WithPollingTimeout(patience)))
	return time.Duration(milliseconds * float64(time.Millisecond)), err
}

// Click clicks what a selector of CSS finds.
func (t *Tab) Click(selector string) error {
	_, err := chromedp.Run(t.ctx, chromedp.Evaluate[bool](fmt.Sprintf("document.querySelector(%q).click(), true", selector)))
	return err
}

// Press presses a key.
func (t *Tab) Press(key string) error { return chromedp.Do(t.ctx, chromedp.KeyEvent(key)) }

// PressControlEnter presses Enter while Control is down.
func (t *Tab) PressControlEnter() error {
	return chromedp.Do(t.ctx, chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
}

// Heap returns how many bytes the objects of the page take that are in use.
func (t *Tab) Heap() (float64, error) {
	if _, err := chromedp.Call(t.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		return 0, err
	}
	usage, err := chromedp.Call(t.ctx, runtime.GetHeapUsage, cdp.Empty{})
	return usage.UsedSize, err
}
