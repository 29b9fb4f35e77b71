// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// reader asks for lists and watches without end, and keeps nothing of them.
type reader struct{ *Server }

func (reader) Contents() map[object.Key]Content { return nil }
func (reader) Observers() []*Observer           { return nil }
func (reader) Disturb(*rand.Rand) error         { return nil }
func (reader) Quiet(bool)                       {}

func (r reader) run(ctx context.Context) {
	client := &http.Client{Transport: r.Config().Transport}
	version := func() string { return strconv.Itoa(max(0, int(number(r.Version()))-histories*5)) }
	for ctx.Err() == nil {
		for _, query := range []url.Values{
			{"limit": {"50"}},
			{"resourceVersion": {r.Version()}},
			{"watch": {"true"}, "resourceVersion": {version()}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"60"}},
			{
				"watch": {"true"}, "sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"},
				"allowWatchBookmarks": {"true"}, "timeoutSeconds": {"60"},
			},
		} {
			r.get(ctx, client, query)
			time.Sleep(time.Second)
		}
	}
}

func (r reader) get(ctx context.Context, client *http.Client, query url.Values) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://chaos"+r.kind.collection()+"?"+query.Encode(), http.NoBody)
	if err != nil {
		panic(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// A fault that never happens shows nothing of a client.
func TestEachFaultHappens(t *testing.T) {
	for _, kind := range []Kind{Pods, Widgets} {
		t.Run(kind.Resource.Plural, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{Kind: kind, Seed: 1})
				defer s.Close()
				ctx, cancel := context.WithCancel(t.Context())
				var readers sync.WaitGroup
				for range 4 {
					readers.Go(func() { reader{s}.run(ctx) })
				}
				defer readers.Wait()
				defer cancel()
				var missing []Fault
				for range 50 { // a few are enough, and chance decides how many
					report, err := Run(s, NewJudge(s), reader{s}, Pace{Events: 2000, Round: 2000, Seed: 1})
					if err != nil {
						t.Fatal(err)
					}
					missing = slices.DeleteFunc(slices.Clone(Faults), func(f Fault) bool { return report.Faults[f] > 0 })
					if len(missing) == 0 {
						return
					}
				}
				t.Errorf("these never happened: %v", missing)
			})
		})
	}
}
