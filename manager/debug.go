// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/nearest"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/workqueue"
)

// loops are those of the parts that are controllers, or have some inside.
func (m *Manager) loops() []controller.Loop {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []controller.Loop
	for _, part := range m.parts {
		all = append(all, loopsOf(part)...)
	}
	return all
}

// named returns the loops of the controller that a name or an alias stands for, or the one
// loop of that name.
func (m *Manager) named(name string) []controller.Loop {
	name = cmp.Or(m.aliases[name], name)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, part := range m.parts {
		loops := loopsOf(part)
		if part.Name() == name {
			return loops
		}
		for _, l := range loops {
			if l.Name() == name {
				return []controller.Loop{l}
			}
		}
	}
	return nil
}

// noController says that no controller of a name runs, and which one may be meant.
func (m *Manager) noController(name string) string {
	known := slices.Collect(maps.Keys(m.aliases))
	for _, l := range m.loops() {
		known = append(known, l.Name())
	}
	slices.Sort(known)
	return fmt.Sprintf("no controller %q runs here%s", name, nearest.Question("%q", name, known))
}

// Of each kind, this many keys are shown, unless ?limit= says otherwise.
const shownKeys = 20

func (m *Manager) debugInformers(w http.ResponseWriter, _ *http.Request) {
	serving.WritePage(w, func(page io.Writer) { _ = m.factory.WriteStatus(page) }) // a buffer has room
}

// debugControllers writes a page for people. ?controller=NAME shows that controller alone, or
// that loop of one. ?format=json is the [Overview].
func (m *Manager) debugControllers(w http.ResponseWriter, r *http.Request) {
	switch format := r.URL.Query().Get("format"); format {
	case "", "text":
	case "json":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_ = json.NewEncoder(w).Encode(m.Overview()) // the client may have gone
		return
	default:
		http.Error(w, fmt.Sprintf("format=%q: want json or text", format), http.StatusBadRequest)
		return
	}
	limit := shownKeys
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			http.Error(w, fmt.Sprintf("limit=%q: want a number of keys", text), http.StatusBadRequest)
			return
		}
		limit = n
	}
	all := m.loops()
	if name := r.URL.Query().Get("controller"); name != "" {
		if all = m.named(name); len(all) == 0 {
			http.Error(w, serving.Printable(m.noController(name)), http.StatusNotFound)
			return
		}
	}
	serving.WritePage(w, func(page io.Writer) {
		m.writeProcess(page)
		for _, c := range all {
			writeController(page, c, limit)
		}
	})
}

// writeProcess says what the process as a whole does.
func (m *Manager) writeProcess(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", firstLine(m.instance), m.state())
	for _, c := range m.ready() {
		if err := c.Ask(); err != nil {
			fmt.Fprintf(w, "not ready: %s: %s\n", c.Name, firstLine(err.Error()))
		}
	}
	if m.elector == nil {
		return
	}
	s := m.elector.Status()
	fmt.Fprintf(w, "lease %s: this is %s, the holder is %s (term %d)\n", m.election.Key, firstLine(s.Identity), firstLine(orNone(s.Holder)), s.Transitions)
	if term := m.fence.term.Load(); term != nil {
		if err := term.Certain(); err != nil {
			fmt.Fprintf(w, "writes are held back: %s\n", firstLine(err.Error()))
		}
	}
	if s.Trouble != nil {
		fmt.Fprintf(w, "trouble with the lease: %s\n", firstLine(s.Trouble.Error()))
	}
}

// state says what the process does.
func (m *Manager) state() string {
	phase, _ := m.phase.Load().(string)
	stop := m.stop.Load()
	if stop == nil || !stop.begun() || phase == stopped {
		return phase
	}
	if err := stop.reason(); err != nil {
		return "stopping: " + firstLine(err.Error())
	}
	return "stopping"
}

func orNone(holder string) string {
	if holder == "" {
		return "none"
	}
	return holder
}

// writeController says what a controller does: how much there is to do, what it waits
// for, what it works on and why, and what fails.
func writeController(w io.Writer, c controller.Loop, limit int) {
	s := c.Status(limit)
	fmt.Fprintf(w, "\n%s\n", c.Name())
	fmt.Fprintf(w, "  %d ready, %d delayed, %d worked on or held back, %d of these wanted again; %d runs asked for, %d failed, %d keys failing, %d given up, %d panics\n",
		s.Queue.Ready, s.Queue.Delayed, s.Queue.Processing, s.Queue.Pending, s.Queue.Adds, s.Failures, s.Queue.Failing, s.GivenUp, panicked(s))
	if s.Kept > 0 {
		fmt.Fprintf(w, "  keys that wait until this manager leads: %d\n", s.Kept)
	}
	for _, informer := range c.Informers() {
		if status := informer.Status(); !status.Synced || status.Trouble != nil {
			fmt.Fprintf(w, "  its informer of %s is not current: %s\n", strings.TrimSpace(status.Kind+" "+status.Selects), trouble(status))
		}
	}
	now := time.Now()
	ago := func(t time.Time) time.Duration { return now.Sub(t).Round(time.Millisecond) }
	page := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer func() { _ = page.Flush() }() // a buffer has room
	for _, k := range s.Keys.Running {
		state := "worked on"
		if what, held := s.Waiting[k.Key]; held {
			state = "waits for " + what
		}
		fmt.Fprintf(page, "  %s\t%s, since %s%s\t%s\n", firstLine(k.Key), state, ago(k.Since), again(k.Next), causes(k.Causes, k.Dropped))
	}
	for _, k := range s.Keys.Ready {
		fmt.Fprintf(page, "  %s\tready, since %s\t%s\n", firstLine(k.Key), ago(k.Since), causes(k.Causes, k.Dropped))
	}
	for _, k := range s.Keys.Delayed {
		fmt.Fprintf(page, "  %s\tdelayed, for another %s\t%s\n", firstLine(k.Key), -ago(k.Until), causes(k.Causes, k.Dropped))
	}
	latest := slices.SortedFunc(maps.Keys(s.Failed), func(a, b string) int { return s.Failed[b].At.Compare(s.Failed[a].At) })
	for i, key := range latest {
		if i == limit {
			fmt.Fprintf(page, "  %d more failed\t\t\n", len(latest)-limit)
			break
		}
		f := s.Failed[key]
		state := fmt.Sprintf("failed %d times, the last time %s ago", f.Runs, ago(f.At))
		if f.GivenUp {
			state = fmt.Sprintf("given up %s ago, failed %d times", ago(f.At), f.Runs)
		}
		fmt.Fprintf(page, "  %s\t%s\t%s\n", firstLine(key), state, firstLine(f.Error))
	}
	for _, of := range slices.Sorted(maps.Keys(s.Panics)) {
		p := s.Panics[of]
		fmt.Fprintf(page, "  %s\tpanic of %s, %d times, the last time %s ago\t%s\n", firstLine(p.Object), of, p.Times, ago(p.At), firstLine(p.Text))
	}
	for _, d := range s.Details {
		for _, line := range d.Lines {
			fmt.Fprintf(page, "  %s: %s\n", d.Title, firstLine(line))
		}
	}
}

// panicked returns how many panics of a loop were contained.
func panicked(s controller.Status) (n uint64) {
	for _, p := range s.Panics {
		n += p.Times
	}
	return n
}

// firstLine leaves a line of the page one line, whatever an error or a panic says, and its
// columns to tabwriter, to which some bytes that are no text mean something.
func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	line = serving.Printable(strings.ReplaceAll(strings.TrimSpace(line), "\t", " "))
	if more {
		line += " ..."
	}
	return line
}

func trouble(s cache.Status) string {
	if s.Trouble != nil {
		return firstLine(s.Trouble.Error())
	}
	return "no first state yet"
}

func again(next *workqueue.Pending) string {
	if next == nil {
		return ""
	}
	return ", wanted again"
}

// causes says why a key is there.
func causes(all []workqueue.Cause, dropped int) string {
	var words []string
	for _, c := range all {
		words = append(words, strings.TrimSpace(c.Source+" "+c.Verb+" "+c.Ref.Key.String()))
	}
	text := strings.Join(words, "; ")
	if dropped > 0 {
		text += fmt.Sprintf("; and %d more", dropped)
	}
	return text
}
