// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chromium

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The size of a new tab, in CSS pixels.
const (
	Width  = 1280
	Height = 900
)

// patience is how long an action may take. A test that reaches it has failed.
const patience = 30 * time.Second

// Tab is a tab of a browser. Its actions are for one goroutine, and what it has recorded for all.
type Tab struct {
	ctx    context.Context
	close  context.CancelFunc
	unseen unseen
}

// Open opens a tab with cookies and storage of its own.
func (b *Browser) Open() (*Tab, error) { return open(b.ctx, chromedp.WithNewBrowserContext()) }

// Beside opens a tab that shares cookies and storage with another one. It closes with the other one.
func (t *Tab) Beside() (*Tab, error) { return open(t.ctx) }

func open(parent context.Context, options ...chromedp.ContextOption) (*Tab, error) {
	t := &Tab{}
	t.ctx, t.close = chromedp.NewContext(parent, append(options, chromedp.WithListener(t.unseen.observe))...)
	err := chromedp.Do(t.ctx, chromedp.EmulateViewport(Width, Height), command(network.Enable, network.EnableParams{}),
		command(log.Enable, cdp.Empty{}), command(audits.Enable, cdp.Empty{}))
	if err != nil {
		t.close()
		return nil, fmt.Errorf("opening a tab: %w", err)
	}
	return t, nil
}

// Close closes the tab.
func (t *Tab) Close() { t.close() }

// do carries out actions one after the other.
func (t *Tab) do(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

// Visit enters an address and waits until the page has loaded.
func (t *Tab) Visit(address string) error {
	if err := t.do(chromedp.Navigate(address)); err != nil {
		return fmt.Errorf("visiting %s: %w", address, err)
	}
	return nil
}

// Back goes back, as the button of the browser does.
func (t *Tab) Back() error {
	_, err := Evaluate[int](t, "history.back(), 1") // a page that the browser has kept is not loaded again, so nothing else is awaited
	return err
}

// Click moves the mouse to the first element that a CSS selector chooses, once it is visible, and clicks.
func (t *Tab) Click(selector string) error {
	// The place is found in one step: a page that changes may replace the element at any time.
	place := fmt.Sprintf(`(e => {
		if (!e?.checkVisibility()) return [];
		e.scrollIntoView({block: "nearest"});
		const box = e.getClientRects()[0];
		return [box.x + box.width / 2, box.y + box.height / 2];
	})(document.querySelector(%q))`, selector)
	for deadline := time.Now().Add(patience); ; time.Sleep(between) {
		at, err := Evaluate[[]float64](t, place)
		switch {
		case err == nil && len(at) == 2:
			return t.do(chromedp.MouseClickXY(at[0], at[1]))
		case t.ctx.Err() != nil || time.Now().After(deadline):
			text, _ := t.Text()
			return fmt.Errorf("clicking %s: it is not visible within %s (%v); the page is:\n%s", selector, patience, err, text) //nolint:errorlint // it may be nil
		}
	}
}

// Keys that have no letter, for Press.
const (
	Tabulator  = kb.Tab
	Enter      = kb.Enter
	Escape     = kb.Escape
	ArrowLeft  = kb.ArrowLeft
	ArrowRight = kb.ArrowRight
)

// Press presses keys, one after the other: letters, or those named above.
func (t *Tab) Press(keys string) error { return t.do(chromedp.KeyEvent(keys)) }

// PressShift presses keys together with Shift.
func (t *Tab) PressShift(keys string) error {
	return t.do(chromedp.KeyEvent(keys, chromedp.KeyModifiers(chromedp.ModifierShift)))
}

// PressControl presses keys together with Ctrl.
func (t *Tab) PressControl(keys string) error {
	return t.do(chromedp.KeyEvent(keys, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
}

// Text returns the text of the page as a reader sees it.
func (t *Tab) Text() (string, error) { return Evaluate[string](t, "document.body.innerText") }

// Address returns the address of the page.
func (t *Tab) Address() (string, error) { return Evaluate[string](t, "location.href") }

// Picture returns what the tab shows, as PNG.
func (t *Tab) Picture() ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}

// Resize sets the size of the tab, in CSS pixels.
func (t *Tab) Resize(width, height int64) error { return t.do(chromedp.EmulateViewport(width, height)) }

// Scheme makes pages see that the user prefers the color scheme "light" or "dark".
func (t *Tab) Scheme(name string) error {
	return t.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	}))
}

// WithoutScripts switches JavaScript off for the pages that the tab visits from now on.
func (t *Tab) WithoutScripts() error {
	return t.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
}

// Evaluate returns the value of an expression of JavaScript. A promise is awaited.
func Evaluate[T any](t *Tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		return value, fmt.Errorf("evaluating %s: %w", expression, err)
	}
	return value, nil
}

// between is how long Until waits before it looks again.
const between = 20 * time.Millisecond

// Until waits until an expression of JavaScript is true. The page may load anew meanwhile.
func (t *Tab) Until(expression string) error {
	deadline := time.Now().Add(patience)
	for {
		is, err := Evaluate[bool](t, "!!("+expression+")")
		switch {
		case is:
			return nil
		case t.ctx.Err() != nil:
			return t.ctx.Err()
		case time.Now().After(deadline):
			text, _ := t.Text()
			return fmt.Errorf("not so within %s: %s (%v); the page is:\n%s", patience, expression, err, text) //nolint:errorlint // it may be nil
		}
		time.Sleep(between)
	}
}
