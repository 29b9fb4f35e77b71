// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// Status is the status of an informer.
type Status struct {
	Kind    string // "pods"
	Selects string // what of the kind it holds; empty: all of it, whole
	Objects int
	Raw     int64 // bytes of the objects as the server sends them
	Stored  int64 // and as they are kept, without what finds them
	Version object.Version
	// Behind is the number of writes between Version and the newest version that an informer
	// of the factory has seen, most of them to other kinds. Bookmarks, about one a minute,
	// update a kind that does not change. The number is meaningful for kinds in one etcd.
	Behind   uint64
	Heard    time.Time // when the server last said anything of the kind
	Events   uint64    // read from watches
	Rate     float64   // events a second, over about the last half minute
	Synced   bool
	Ended    bool              // it has stopped, and nothing of it runs
	Trouble  error             // what keeps it from being current; nil: nothing
	Faults   []Fault           // objects that the transform fails for, ten at most, by key
	Faulty   int               // how many such objects there are
	Relists  map[string]uint64 // whole states that were requested, by reason
	Watches  map[string]uint64 // watches that were begun again, by reason
	Handlers []HandlerStatus
}

// Status returns the status of the informer.
func (h Handle) Status() Status {
	i := h.informer.now()
	now := i.state()
	s := Status{
		Kind: i.name, Selects: i.selects, Objects: now.len, Version: now.version, Synced: i.isSynced.Load(), Trouble: h.Trouble(),
		Raw: i.counts.raw.Load(), Stored: i.counts.stored.Load(), Events: i.counts.events.Load(), Rate: i.counts.perSecond(),
		Relists: i.counts.restarted(relisted), Watches: i.counts.restarted(rewatched),
	}
	s.Faults, s.Faulty = i.shownFaults()
	if heard := i.counts.heard.Load(); heard != 0 {
		s.Heard = time.Unix(0, heard)
	}
	select {
	case <-i.ended:
		s.Ended = true
	default:
	}
	i.mu.Lock()
	handlers := slices.Clone(i.handlers)
	i.mu.Unlock()
	for _, r := range handlers {
		s.Handlers = append(s.Handlers, r.Status())
	}
	return s
}

// Status returns the status of all informers, in the order of their kinds.
func (f *Factory) Status() []Status {
	f.mu.Lock()
	informers := make([]*informer, 0, len(f.informers))
	for _, i := range f.informers {
		informers = append(informers, i)
	}
	f.mu.Unlock()
	all := make([]Status, 0, len(informers))
	for _, i := range informers {
		all = append(all, Handle{i}.Status())
	}
	slices.SortFunc(all, func(a, b Status) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Selects, b.Selects))
	})
	var newest uint64
	for i := range all {
		newest = max(newest, number(all[i].Version))
	}
	for i := range all {
		if all[i].Synced {
			all[i].Behind = newest - number(all[i].Version)
		}
	}
	return all
}

// number returns a version as a number, or 0 if it does not fit into 64 bits.
func number(v object.Version) uint64 {
	n, _ := strconv.ParseUint(string(v), 10, 64)
	return n
}

// WriteStatus writes a debug page: what each informer holds, how far it is behind, and what
// waits for which handler.
func (f *Factory) WriteStatus(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "KIND\tOBJECTS\tRAW\tSTORED\tVERSION\tBEHIND\tHEARD\tEVENTS\tEVENTS/S\tSTATE")
	all := f.Status()
	for _, s := range all {
		heard := "never"
		if !s.Heard.IsZero() {
			heard = time.Since(s.Heard).Round(time.Second).String() + " ago"
		}
		fmt.Fprintf(out, "%s\t%d\t%s\t%s\t%s\t%d\t%s\t%d\t%.1f\t%s\n", s.informer(), s.Objects,
			size(s.Raw), size(s.Stored), s.Version, s.Behind, heard, s.Events, s.Rate, s.state())
	}
	for _, s := range all {
		for _, f := range s.Faults {
			fmt.Fprintf(out, "\n%s\tcannot use %s at version %s for %s: %s", s.informer(), f.Key, f.Version, time.Since(f.Since).Round(time.Second), line(f.Err))
		}
		if more := s.Faulty - len(s.Faults); more > 0 {
			fmt.Fprintf(out, "\n%s\tcannot use %d more objects", s.informer(), more)
		}
	}
	for _, s := range all {
		for _, reasons := range []struct {
			what string
			by   map[string]uint64
		}{{"listed", s.Relists}, {"watched again", s.Watches}} {
			for _, why := range slices.Sorted(maps.Keys(reasons.by)) {
				fmt.Fprintf(out, "\n%s\t%s %d times: %s", s.informer(), reasons.what, reasons.by[why], why)
			}
		}
	}
	fmt.Fprintln(out, "\n\nHANDLER\tKIND\tWAITING\tHANDLED\tMERGED\tPANICS\tSPENT\tBUSY\tHELD UP\tSTATE")
	for _, s := range all {
		for _, h := range s.Handlers {
			fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", h.Name, s.informer(), h.Waiting, h.Handled, h.Merged, h.Panics,
				round(h.Spent), round(h.Busy), round(h.HeldUp), h.state())
		}
	}
	return out.Flush()
}

// informer is which one it is: a kind may have several.
func (s *Status) informer() string { return strings.TrimSpace(s.Kind + " " + s.Selects) }

// state says in a few words whether the informer is current.
func (s *Status) state() string {
	switch {
	case s.Trouble != nil && s.Synced:
		return "behind: " + line(s.Trouble)
	case s.Trouble != nil:
		return "no state yet: " + line(s.Trouble)
	case !s.Synced:
		return "no state yet"
	}
	return "current"
}

// state says in a few words whether the handler keeps up.
func (h *HandlerStatus) state() string {
	switch {
	case h.Merging:
		return "behind: changes are merged"
	case h.Busy > patience:
		return "does not return"
	}
	return "well"
}

// line is an error in one line: what a server answers may be a page of its own.
// Bytes that are no UTF-8 would mean something to tabwriter.
func line(err error) string {
	return strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "?")
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.bytes), unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
