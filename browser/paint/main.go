// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/setpoint-io/setpoint/browser/internal/chromium"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	hold := flag.Bool("hold", false, "open all addresses, until the standard input ends")
	flag.Parse()
	err := errors.New("no address given")
	if flag.NArg() > 0 {
		err = measure(ctx, *hold, flag.Args())
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "paint:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, hold bool, addresses []string) error {
	browser, err := chromium.Start(ctx)
	if err != nil {
		return err
	}
	defer browser.Close()
	if hold {
		return keepOpen(browser, addresses)
	}
	for _, address := range addresses {
		took, err := paint(browser, address)
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		fmt.Printf("%.1f %.1f\n", took[0], took[1])
	}
	return nil
}

// paint returns the milliseconds from the navigation to an address until the server has answered, and until something is seen
// of its page.
func paint(browser *chromium.Browser, address string) ([]float64, error) {
	tab, err := browser.Open()
	if err != nil {
		return nil, err
	}
	defer tab.Close()
	if err := tab.Visit(address); err != nil {
		return nil, err
	}
	// A page with an error is seen as fast as any: only one of Setpoint's views counts.
	if err := tab.Until("document.querySelector('#main [data-part=head]')"); err != nil {
		return nil, err
	}
	// The frame of a view can be painted before the answer has ended.
	const answer, painted = "performance.getEntriesByType('navigation')[0].responseEnd", "performance.getEntriesByName('first-contentful-paint')"
	if err := tab.Until(answer + " > 0 && " + painted + ".length > 0"); err != nil {
		return nil, err
	}
	return chromium.Evaluate[[]float64](tab, "["+answer+", "+painted+"[0].startTime]")
}

// countUpdates counts how often parts of the view are replaced, from now on.
const countUpdates = "{window.updates = 0; new MutationObserver(() => window.updates++).observe(document.getElementById('main'), {childList: true, subtree: true})}; 1"

// keepOpen keeps addresses open until the standard input ends.
func keepOpen(browser *chromium.Browser, addresses []string) error {
	tabs := make([]*chromium.Tab, len(addresses))
	for i, address := range addresses {
		var err error
		if tabs[i], err = browser.Open(); err == nil {
			err = errors.Join(tabs[i].Visit(address), tabs[i].Until("performance.getEntriesByType('resource').length > 0"))
		}
		if err == nil {
			_, err = chromium.Evaluate[int](tabs[i], countUpdates)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
	}
	fmt.Println("open")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	for i, tab := range tabs {
		connected, err := chromium.Evaluate[bool](tab, "document.getElementById('connection').hidden")
		if err != nil {
			return err
		}
		if !connected {
			text, _ := tab.Text()
			return fmt.Errorf("%s has lost its server:\n%s", addresses[i], text)
		}
		updates, err := chromium.Evaluate[int](tab, "window.updates")
		if err != nil {
			return err
		}
		fmt.Println(updates)
	}
	return nil
}
