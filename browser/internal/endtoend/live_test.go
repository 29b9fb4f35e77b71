// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/browser/internal/chromium"
	"github.com/setpoint-io/setpoint/browser/internal/stage"
	"github.com/setpoint-io/setpoint/page"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// busy records a thousand runs a second until the test ends.
func busy(t *testing.T, s *stage.Stage) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	running.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for i := range 10 {
				of := runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: fmt.Sprint("busy-", i)}
				err := s.Run("endpointslice-controller", of, time.Now(), workqueue.Cause{Source: "x", Verb: workqueue.Timer}, func(r *runs.Ended) {
					r.Writes = []runs.Write{{Verb: "update", Object: of, Version: fmt.Sprint(1000 + 10*n + i)}}
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
}

// countSwaps counts how often parts of the view are replaced.
const countSwaps = "{window.swaps = 0; new MutationObserver(() => window.swaps++).observe(document.getElementById('main'), {childList: true, subtree: true})}; 1"

// While controllers run a thousand times a second, a view changes a few times a second at most, in two tabs alike. The
// focus, what is open and the position of the reader stay.
func TestLiveUpdatesLeaveTheReaderAlone(t *testing.T) {
	t.Parallel()
	s, server := shop(t)
	tab := openAt(t, server, "/changes?namespace=shop")
	beside, err := tab.Beside()
	must(t, err)
	must(t, beside.Visit(server.URL+"/"))
	must(t, tab.Resize(chromium.Width, 300))
	must(t, tab.Click("details[id^='edit-uid-web-kubectl'] summary"))
	must(t, tab.Until("document.querySelector('details[open]')"))
	at, err := chromium.Evaluate[float64](tab, "{document.querySelector('details[open] summary').focus({preventScroll: true}); scrollTo(0, 60)}; "+countSwaps+"; scrollY")
	must(t, err)
	_, err = chromium.Evaluate[int](beside, countSwaps)
	must(t, err)
	began := time.Now()
	busy(t, s)
	for _, one := range []*chromium.Tab{tab, beside} {
		must(t, one.Until("window.swaps >= 3"))
	}
	shows(t, tab, "endpointslice-controller for busy")
	for name, one := range map[string]*chromium.Tab{"what happened": tab, "the loops": beside} {
		swaps, err := chromium.Evaluate[int](one, "window.swaps")
		must(t, err)
		// Each update of a view replaces a handful of parts.
		if most := int(time.Since(began).Seconds()+2) * 4 * 6; swaps > most {
			t.Errorf("%s: %d parts were replaced in %s, want at most %d", name, swaps, time.Since(began), most)
		}
	}
	if kept, err := chromium.Evaluate[bool](tab, "document.activeElement.closest('details')?.id.startsWith('edit-uid-web-kubectl') && document.activeElement.closest('details').open"); err != nil || !kept {
		t.Error("the focus or the open group is lost:", err)
	}
	if now, err := chromium.Evaluate[float64](tab, "scrollY"); err != nil || now != at {
		t.Errorf("the reader was at %v and is at %v, %v", at, now, err)
	}
}

// A page whose server goes away says since when it is old, and goes on when the server is back.
func TestAManagerThatGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	s, err := stage.Shop()
	must(t, err)
	handler := page.New(s, page.Options{})
	server := httptest.NewServer(handler)
	tab := openTab(t)
	must(t, tab.Visit(server.URL+"/"))
	shows(t, tab, "1 loop needs attention")
	must(t, tab.Until("performance.getEntriesByType('resource').length > 0 && document.readyState === 'complete'"))
	address := server.Listener.Addr().String()
	must(t, server.Listener.Close()) // first: a new connection would go on
	server.CloseClientConnections()
	must(t, tab.Until("!document.getElementById('connection').hidden"))
	shows(t, tab, "not connected since")
	shows(t, tab, "1 loop needs attention")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	must(t, err)
	again := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = again.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = again.Close() })
	must(t, tab.Until("document.getElementById('connection').hidden"))
	if foreign := tab.Foreign(server.URL); len(foreign) > 0 {
		t.Errorf("requests to other servers: %q", foreign)
	}
}
