// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/cache"
)

// Informers returns a collector of the status of all informers of a factory. It is safe for
// concurrent use.
func Informers(f *cache.Factory) prometheus.Collector { return informers(f.Status) }

type informers func() []cache.Status

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("setpoint_"+name, help, labels, nil)
}

// Every series of an informer has labels with its kind and with a description of what the
// informer selects.
var (
	objects = describe("informer_objects", "Objects that the informer holds.", "kind", "selects")
	raw     = describe("informer_raw_bytes", "Size of these objects before compression.", "kind", "selects")
	stored  = describe("informer_stored_bytes", "Size of these objects as they are kept, without what finds them.", "kind", "selects")
	synced  = describe("informer_synced", "1 once the informer has had a whole state of its kind.", "kind", "selects")
	trouble = describe("informer_trouble", "1 while something keeps the informer from being current.", "kind", "selects")
	behind  = describe("informer_behind_writes", "Writes that the server has made beyond what the informer has seen, as other informers know.", "kind", "selects")
	silence = describe("informer_silence_seconds", "Time since the server last said anything of the kind, bookmarks included.", "kind", "selects")
	events  = describe("informer_events_total", "Events read from watches.", "kind", "selects")
	relists = describe("informer_relists_total", "Lists of the whole state, by reason.", "kind", "selects", "reason")
	watches = describe("informer_watches_total", "Watches begun again, by reason.", "kind", "selects", "reason")

	waiting = describe("handler_waiting", "Changes that the handler has not received yet.", "kind", "selects", "handler")
	handled = describe("handler_events_total", "Events that the handler has received.", "kind", "selects", "handler")
	merged  = describe("handler_merged_total", "Changes that were merged into one that waited.", "kind", "selects", "handler")
	panics  = describe("handler_panics_total", "Events in which the handler panicked.", "kind", "selects", "handler")
	spent   = describe("handler_seconds_total", "Time spent in calls of the handler that have ended.", "kind", "selects", "handler")
	busy    = describe("handler_busy_seconds", "How long the handler's running call has been running.", "kind", "selects", "handler")
	heldUp  = describe("handler_held_up_seconds_total", "How long the informer has waited for the handler.", "kind", "selects", "handler")

	all = []*prometheus.Desc{
		objects, raw, stored, synced, trouble, behind, silence, events, relists, watches,
		waiting, handled, merged, panics, spent, busy, heldUp,
	}
)

// Describe makes it a prometheus.Collector.
func (informers) Describe(out chan<- *prometheus.Desc) {
	for _, d := range all {
		out <- d
	}
}

// Collect makes it a prometheus.Collector.
func (c informers) Collect(out chan<- prometheus.Metric) {
	for _, s := range series(c()) {
		gauge := func(d *prometheus.Desc, value float64, more ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{s.Kind, s.Selects}, more...)...)
		}
		counter := func(d *prometheus.Desc, value float64, more ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, append([]string{s.Kind, s.Selects}, more...)...)
		}
		gauge(objects, float64(s.Objects))
		gauge(raw, float64(s.Raw))
		gauge(stored, float64(s.Stored))
		gauge(synced, flag(s.Synced))
		gauge(trouble, flag(s.Trouble != nil))
		gauge(behind, float64(s.Behind))
		if !s.Heard.IsZero() {
			gauge(silence, time.Since(s.Heard).Seconds())
		}
		counter(events, float64(s.Events))
		for reason, n := range s.Relists {
			counter(relists, float64(n), reason)
		}
		for reason, n := range s.Watches {
			counter(watches, float64(n), reason)
		}
		for name, h := range byName(s.Handlers) {
			gauge(waiting, float64(h.Waiting), name)
			counter(handled, float64(h.Handled), name)
			counter(merged, float64(h.Merged), name)
			counter(panics, float64(h.Panics), name)
			counter(spent, h.Spent.Seconds(), name)
			gauge(busy, h.Busy.Seconds(), name)
			counter(heldUp, h.HeldUp.Seconds(), name)
		}
	}
}

// series adds up the informers that have the same labels, since a collector may send a series
// only once: a kind may be read in two versions or into two types. all is sorted by label.
func series(all []cache.Status) []cache.Status {
	var sums []cache.Status
	for _, s := range all {
		last := len(sums) - 1
		if last < 0 || sums[last].Kind != s.Kind || sums[last].Selects != s.Selects {
			sums = append(sums, s)
			continue
		}
		sum := &sums[last]
		sum.Objects += s.Objects
		sum.Raw += s.Raw
		sum.Stored += s.Stored
		sum.Events += s.Events
		sum.Synced = sum.Synced && s.Synced
		sum.Trouble = cmp.Or(sum.Trouble, s.Trouble)
		sum.Behind = max(sum.Behind, s.Behind)
		if sum.Heard.IsZero() || !s.Heard.IsZero() && s.Heard.Before(sum.Heard) {
			sum.Heard = s.Heard
		}
		sum.Relists, sum.Watches = added(sum.Relists, s.Relists), added(sum.Watches, s.Watches)
		sum.Handlers = append(sum.Handlers, s.Handlers...)
	}
	return sums
}

func added(a, b map[string]uint64) map[string]uint64 {
	sum := map[string]uint64{}
	for _, counts := range []map[string]uint64{a, b} {
		for reason, n := range counts {
			sum[reason] += n
		}
	}
	return sum
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// byName adds up the handlers of one name, since a collector may send a series only once.
func byName(handlers []cache.HandlerStatus) map[string]cache.HandlerStatus {
	sums := map[string]cache.HandlerStatus{}
	for _, h := range handlers {
		sum := sums[h.Name]
		sum.Waiting += h.Waiting
		sum.Handled += h.Handled
		sum.Merged += h.Merged
		sum.Panics += h.Panics
		sum.Spent += h.Spent
		sum.Busy = max(sum.Busy, h.Busy)
		sum.HeldUp += h.HeldUp
		sums[h.Name] = sum
	}
	return sums
}
