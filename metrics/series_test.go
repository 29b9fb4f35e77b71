// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/workqueue"
)

// scraped returns the value of each series of a collector, without histograms.
func scraped(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry() // refuses what Describe has not named
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetHistogram() != nil {
				continue
			}
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			all[fmt.Sprintf("%s{%s}", f.GetName(), strings.Join(labels, ","))] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

func compare(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, exported := got[name]; !exported || value != want[name] {
			t.Errorf("%s is %g (exported: %t), want %g", name, value, exported, want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, known := want[name]; !known {
			t.Errorf("%s is exported too", name)
		}
	}
}

// Each figure of a status has a value of its own, so that none stands for another.
func TestEveryFigureOfAnInformerIsASeriesOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no time passes
		got := scraped(t, informers(func() []cache.Status {
			return []cache.Status{{
				Kind: "pods", Selects: "in team-a", Objects: 1, Raw: 2, Stored: 3, Behind: 4, Events: 5, Synced: true,
				Heard: time.Now().Add(-6 * time.Second), Trouble: errors.New("forbidden"),
				Relists: map[string]uint64{"forbidden": 7}, Watches: map[string]uint64{"its time was up": 8},
				Handlers: []cache.HandlerStatus{{
					Name: "web", Waiting: 9, Handled: 10, Merged: 11, Panics: 12,
					Spent: 13 * time.Second, Busy: 14 * time.Second, HeldUp: 15 * time.Second,
				}},
			}}
		}))
		const pods, web = "kind=pods,selects=in team-a", "handler=web,kind=pods,selects=in team-a"
		compare(t, got, map[string]float64{
			"setpoint_informer_objects{" + pods + "}":                                             1,
			"setpoint_informer_raw_bytes{" + pods + "}":                                           2,
			"setpoint_informer_stored_bytes{" + pods + "}":                                        3,
			"setpoint_informer_behind_writes{" + pods + "}":                                       4,
			"setpoint_informer_events_total{" + pods + "}":                                        5,
			"setpoint_informer_silence_seconds{" + pods + "}":                                     6,
			"setpoint_informer_synced{" + pods + "}":                                              1,
			"setpoint_informer_trouble{" + pods + "}":                                             1,
			"setpoint_informer_relists_total{kind=pods,reason=forbidden,selects=in team-a}":       7,
			"setpoint_informer_watches_total{kind=pods,reason=its time was up,selects=in team-a}": 8,
			"setpoint_handler_waiting{" + web + "}":                                               9,
			"setpoint_handler_events_total{" + web + "}":                                          10,
			"setpoint_handler_merged_total{" + web + "}":                                          11,
			"setpoint_handler_panics_total{" + web + "}":                                          12,
			"setpoint_handler_seconds_total{" + web + "}":                                         13,
			"setpoint_handler_busy_seconds{" + web + "}":                                          14,
			"setpoint_handler_held_up_seconds_total{" + web + "}":                                 15,
		})
	})
}

// An informer that has not begun has no series of its silence, and neither is synced nor in
// trouble.
func TestAnInformerThatHasNotBegunHasNoSilence(t *testing.T) {
	got := scraped(t, informers(func() []cache.Status { return []cache.Status{{Kind: "pods"}} }))
	want := map[string]float64{}
	for _, name := range []string{"objects", "raw_bytes", "stored_bytes", "behind_writes", "events_total", "synced", "trouble"} {
		want["setpoint_informer_"+name+"{kind=pods,selects=}"] = 0
	}
	compare(t, got, want)
}

// Informers and handlers with the same labels are added up: of times and states the series has
// the worst one.
func TestInformersWithTheSameLabelsAreAddedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := func(n int, synced bool, trouble error) cache.Status {
			return cache.Status{
				Kind: "pods", Objects: n, Raw: int64(n), Stored: int64(n), Behind: uint64(n), Events: uint64(n), Synced: synced, Trouble: trouble,
				Heard: time.Now().Add(-time.Duration(n) * time.Second), Relists: map[string]uint64{"forbidden": uint64(n)},
				Handlers: []cache.HandlerStatus{{Name: "web", Waiting: n, Busy: time.Duration(n) * time.Second}},
			}
		}
		got := scraped(t, informers(func() []cache.Status {
			return []cache.Status{status(1, true, nil), status(2, false, errors.New("forbidden")), {Kind: "pods", Selects: "metadata"}}
		}))
		want := map[string]float64{
			"informer_objects": 3, "informer_raw_bytes": 3, "informer_stored_bytes": 3, "informer_events_total": 3,
			"informer_behind_writes": 2, "informer_silence_seconds": 2, "informer_synced": 0, "informer_trouble": 1,
			"informer_relists_total": 3, "handler_waiting": 3, "handler_busy_seconds": 2,
		}
		for name, value := range got {
			if strings.Contains(name, "selects=metadata") || !strings.Contains(name, "selects=}") {
				continue
			}
			short := strings.TrimPrefix(name[:strings.Index(name, "{")], "setpoint_")
			if value != want[short] {
				t.Errorf("%s is %g, want %g", name, value, want[short])
			}
			delete(want, short)
		}
		if len(want) > 0 {
			t.Errorf("not exported: %v", want)
		}
	})
}

func TestEveryFigureOfAQueueIsASeriesOfItsOwn(t *testing.T) {
	got := scraped(t, Queues(func() []workqueue.Stats {
		return []workqueue.Stats{{
			Name: "web", Ready: 1, Delayed: 2, Processing: 3, Pending: 4, Failing: 5, Adds: 6, Retries: 7,
			Unfinished: 8 * time.Second, LongestRunning: 9 * time.Second,
		}}
	}))
	compare(t, got, map[string]float64{
		"workqueue_depth{name=web}":                             5, // ready and pending
		"workqueue_adds_total{name=web}":                        6,
		"workqueue_retries_total{name=web}":                     7,
		"workqueue_unfinished_work_seconds{name=web}":           8,
		"workqueue_longest_running_processor_seconds{name=web}": 9,
		"workqueue_keys{name=web,state=ready}":                  1,
		"workqueue_keys{name=web,state=delayed}":                2,
		"workqueue_keys{name=web,state=processing}":             3,
		"workqueue_keys{name=web,state=pending}":                4,
		"workqueue_keys{name=web,state=failing}":                5,
	})
}
