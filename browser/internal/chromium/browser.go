// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chromium

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// Variable is the environment variable that names the program, if it is not in PATH.
const Variable = "CHROMIUM"

// ErrMissing says that no Chromium is installed.
var ErrMissing = errors.New("no Chromium is installed: on Debian \"apt-get install --no-install-recommends chromium\" installs it, and elsewhere $" +
	Variable + " names the program")

// programs are the names under which distributions install Chromium.
var programs = []string{"chromium", "chromium-browser", "google-chrome"}

// find returns the path of the program.
func find() (string, error) {
	if named := os.Getenv(Variable); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("looking for Chromium, as $%s says: %w", Variable, err)
		}
		return path, nil
	}
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrMissing
}

// Browser is a running Chromium. It is safe for concurrent use.
type Browser struct {
	ctx   context.Context
	close context.CancelFunc
}

// Start starts a Chromium without a window. It returns [ErrMissing] if there is none.
// The browser ends with Close, and with ctx.
func Start(ctx context.Context) (*Browser, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.DisableGPU,
		chromedp.WindowSize(Width, Height),
		chromedp.Flag("hide-scrollbars", true), // pictures are the same on every machine
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to sandbox pages for root
	}
	allocated, free := chromedp.NewExecAllocator(ctx, options...)
	// Events that this version of chromedp does not know are no failure of a test.
	quiet := func(string, ...any) {}
	browser, end := chromedp.NewContext(allocated, chromedp.WithErrorf(quiet), chromedp.WithLogf(quiet))
	b := &Browser{ctx: browser, close: func() { end(); free() }}
	if err := chromedp.Do(browser); err != nil {
		b.close()
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return b, nil
}

// Close ends the browser and its tabs, and removes its files.
func (b *Browser) Close() { b.close() }

// command is an action that sends a command of the protocol and ignores the result.
func command[P, R any](send cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.Call(ctx, send, params)
		return err
	})
}
