// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/browser/internal/chromium"
)

// shared is the browser of all tests, which the first one starts.
var shared struct {
	sync.Mutex
	browser *chromium.Browser
	err     error
}

// endings end what the tests share. Each is called once, after the tests.
var endings []func() error

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range endings {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if shared.browser != nil {
		shared.browser.Close()
	}
	os.Exit(code)
}

// theBrowser returns the browser.
func theBrowser(t *testing.T) *chromium.Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser, which -short leaves out")
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.browser == nil && shared.err == nil {
		shared.browser, shared.err = chromium.Start(context.WithoutCancel(t.Context())) // it outlives the test
	}
	switch {
	case errors.Is(shared.err, chromium.ErrMissing) && os.Getenv("CI") != "true":
		t.Skip(shared.err)
	case shared.err != nil:
		t.Fatal(shared.err)
	}
	return shared.browser
}

// openTab opens a tab that closes with the test.
func openTab(t *testing.T) *chromium.Tab {
	t.Helper()
	tab, err := theBrowser(t).Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.Close)
	return tab
}

// must fails the test if actions in a tab failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("in the browser: %w", err))
	}
}

// await waits until a condition holds that the browser or a server brings about.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
