// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
)

// broken answers requests for paths that end so as a server does that is in trouble.
type broken struct {
	next   http.RoundTripper
	suffix string
}

func (b broken) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, b.suffix) {
		return b.next.RoundTrip(r)
	}
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"conversion webhook failed"}`
	return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// A run with --once does not wait for ever for what cannot be read.
func TestWhatCannotBeReadIsAnErrorForWhoAsksOnce(t *testing.T) {
	for _, suffix := range []string{"/configmaps", "/apis"} {
		t.Run(suffix, func(t *testing.T) {
			s := newScene(t)
			n := open(t, filepath.Join(t.TempDir(), "cursor"))
			config := rest.CopyConfig(s.Config)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return broken{next, suffix} })
			m, err := manager.New(config)
			if err != nil {
				t.Fatal(err)
			}
			w, err := New(m, Options{Kinds: []string{"configmaps"}, Namespaces: []string{s.namespace}, Journal: n.Journal, Route: toBook, Once: true})
			if err != nil {
				t.Fatal(err)
			}
			w.patience = 100 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), controlplanetest.Patience)
			defer cancel()
			informing := make(chan struct{})
			go func() { defer close(informing); _ = m.InformerFactory().Run(ctx) }()
			defer func() { cancel(); <-informing }()
			if err := w.Run(ctx); err == nil || !strings.Contains(err.Error(), "conversion webhook failed") {
				t.Errorf("the error is %v, want that of the server", err)
			}
		})
	}
}

// The same holds for a sink that takes nothing and whose queue is full.
func TestASinkThatIsFullIsAnErrorForWhoAsksOnce(t *testing.T) {
	d := newDesk(t, 1, Options{Once: true})
	d.watch.patience = time.Millisecond
	d.happens("a", event.Created, event.Content)
	d.take(report{follower: d.f, event: &event.Event{ID: "x", Verb: event.Created, Kind: d.f.kind, Key: object.Key{Name: "b"}, Version: "200", Time: noon}, version: "200", seen: journal.Seen{Version: "200"}}, noon)
	if err := d.publish(t.Context(), true); err == nil || !strings.Contains(err.Error(), "book") {
		t.Errorf("the error is %v, want one that names the sink", err)
	}
	d.want("pods 101, a 101", "created pods a")
}
