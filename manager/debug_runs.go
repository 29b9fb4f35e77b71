// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/runs"
)

// runsPage is the answer of /debug/runs in JSON.
type runsPage struct {
	Format  int         `json:"format"` // runs.PageFormat, before what it is about: a decoder may fail at what follows
	Stats   runs.Stats  `json:"stats"`
	Present []runs.Run  `json:"present"`          // the last runs of their keys, if they state reasons
	Runs    []tracedRun `json:"runs"`             // the newest first
	More    bool        `json:"more"`             // there are more runs than the limit
	Hidden  int         `json:"hidden,omitempty"` // objects that are not named, as the user may not get them
	// HiddenRuns is how many runs are about objects that the user may not get.
	HiddenRuns int `json:"hiddenRuns,omitempty"`
	// Loops has what the loops do at present about the object of the query.
	Loops []runs.KeyState `json:"loops,omitempty"`
}

// tracedRun is a run with what led to it.
type tracedRun struct {
	runs.Run
	Origins []runs.Origin `json:"origins,omitempty"`
}

// debugRuns answers with the runs of a controller, of a key or of an object: as text for people, or in JSON.
func (m *Manager) debugRuns(w http.ResponseWriter, r *http.Request) {
	if m.runs == nil {
		http.Error(w, "runs are not recorded: the manager was made with a record of 0 bytes", http.StatusNotFound)
		return
	}
	parameters := r.URL.Query()
	q, err := runsQuery(parameters)
	if err != nil {
		http.Error(w, serving.Printable(err.Error()), http.StatusBadRequest)
		return
	}
	sight, err := m.sightOf(r, &q)
	if err != nil {
		refuseSight(w, err)
		return
	}
	loops := []string{""} // all
	if name := parameters.Get("controller"); name != "" {
		loops = nil
		for _, l := range m.named(name) {
			loops = append(loops, l.Name())
		}
		if len(loops) == 0 {
			http.Error(w, serving.Printable(m.noController(name)), http.StatusNotFound)
			return
		}
	}
	page := m.findRuns(loops, q, parameters.Has("origins"))
	page.Loops = m.KeyStates(q.Object)
	page.hide(r.Context(), sight)
	if parameters.Get("format") == "json" {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_ = json.NewEncoder(w).Encode(page) // the client may have gone
		return
	}
	serving.WritePage(w, func(to io.Writer) { page.write(to) })
}

// runsQuery reads what the parameters of a request ask for, apart from the controller.
func runsQuery(parameters url.Values) (runs.Query, error) {
	q := runs.Query{Key: parameters.Get("key"), Limit: shownKeys, Object: runs.Object{
		Group: parameters.Get("group"), Kind: parameters.Get("kind"), Namespace: parameters.Get("namespace"), Name: parameters.Get("name"),
		UID: types.UID(parameters.Get("uid")),
	}}
	q.Contains, q.Wrote = parameters.Get("contains"), parameters.Has("wrote")
	if o := q.Object; o.Namespace != "" && o.Kind == "" && o.Name == "" && o.UID == "" {
		q.Namespace, q.Object = o.Namespace, runs.Object{}
	}
	if text := parameters.Get("since"); text != "" {
		since, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return q, fmt.Errorf("since=%q: want a time such as 2026-01-02T15:04:05Z", text)
		}
		q.Since = since
	}
	if text := parameters.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return q, fmt.Errorf("limit=%q: want a number of runs, at least 1", text)
		}
		q.Limit = n
	}
	if format := parameters.Get("format"); format != "" && format != "json" && format != "text" {
		return q, fmt.Errorf("format=%q: want json or text", format)
	}
	if o := q.Object; o != (runs.Object{}) && o.UID == "" && (o.Kind == "" || o.Name == "") {
		return q, errors.New("an object needs kind=KIND and name=NAME, with group=GROUP and namespace=NAMESPACE if it has them, or uid=UID")
	}
	return q, nil
}

// findRuns finds the runs of some loops; "" is all loops.
func (m *Manager) findRuns(loops []string, q runs.Query, origins bool) runsPage {
	page := runsPage{Format: runs.PageFormat, Stats: m.runs.Stats(), Present: []runs.Run{}, Runs: []tracedRun{}}
	for _, q.Controller = range loops {
		page.Present = append(page.Present, m.runs.Present(q)...)
		found, more := m.runs.Find(q)
		page.More = page.More || more
		for _, run := range found {
			page.Runs = append(page.Runs, tracedRun{Run: run})
		}
	}
	slices.SortStableFunc(page.Runs, func(a, b tracedRun) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.Number, a.Number))
	})
	if len(page.Runs) > q.Limit {
		page.Runs, page.More = page.Runs[:q.Limit], true
	}
	if len(page.Present) > q.Limit {
		page.Present, page.More = page.Present[:q.Limit], true
	}
	for i := range page.Runs {
		if origins {
			page.Runs[i].Origins = m.runs.Origins(&page.Runs[i].Run)
		}
	}
	return page
}

// hide takes out of the page what its user may not see.
func (p *runsPage) hide(ctx context.Context, s *sight) {
	for i := range p.Present {
		s.hideIn(ctx, &p.Present[i])
	}
	p.Present = slices.DeleteFunc(p.Present, func(run runs.Run) bool { return len(run.Reasons) == 0 })
	for i := range p.Runs {
		s.hideIn(ctx, &p.Runs[i].Run)
		s.hideOrigins(ctx, p.Runs[i].Origins)
	}
	for i := range p.Loops {
		s.hideInState(ctx, &p.Loops[i])
	}
	p.Hidden, p.HiddenRuns = s.hidden, len(s.hiddenRuns)
}

// write writes the page for people.
func (p *runsPage) write(w io.Writer) {
	fmt.Fprintf(w, "%d runs recorded; %d of %d bytes in use; ", p.Stats.Runs, p.Stats.Bytes, p.Stats.Limit)
	if p.Stats.Restored > 0 {
		fmt.Fprintf(w, "%d entries of earlier processes; ", p.Stats.Restored)
	}
	if p.Stats.Since.IsZero() {
		fmt.Fprintf(w, "nothing is missing\n")
	} else {
		fmt.Fprintf(w, "runs before %s are missing\n", clock(p.Stats.Since))
	}
	if p.HiddenRuns > 0 {
		fmt.Fprintf(w, "%d runs are about objects that the user may not get\n", p.HiddenRuns)
	}
	if p.Hidden > 0 {
		fmt.Fprintf(w, "%d objects are not named: the user may not get them\n", p.Hidden)
	}
	if len(p.Present) > 0 {
		fmt.Fprintf(w, "\nNOT DONE, AND WHY\n")
	}
	for i := range p.Present {
		run := &p.Present[i]
		for _, reason := range run.Reasons {
			fmt.Fprintf(w, "%s %s: %s: %s%s\n", run.Controller, firstLine(run.Key), reason.Code, firstLine(reason.String()), nextLook(run))
		}
	}
	if len(p.Loops) > 0 {
		fmt.Fprintf(w, "\nLOOPS\n")
	}
	for i := range p.Loops {
		fmt.Fprintf(w, "%s %s: %s\n", p.Loops[i].Controller, firstLine(p.Loops[i].Key), firstLine(stateText(&p.Loops[i])))
	}
	fmt.Fprintf(w, "\nRUNS, THE NEWEST FIRST\n")
	for i := range p.Runs {
		writeRun(w, &p.Runs[i].Run)
		writeOrigins(w, p.Runs[i].Origins, "    ")
	}
	if p.More {
		fmt.Fprintf(w, "and more; ?limit=N shows N\n")
	}
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }

// nextLook says when a key runs again at the latest.
func nextLook(run *runs.Run) string {
	if run.NextLook == nil {
		return ""
	}
	return "; runs again at " + clock(*run.NextLook)
}

// writeRun writes a run: how it ended in its first line, then why it ran, what it wrote and what it stated.
func writeRun(w io.Writer, run *runs.Run) {
	fmt.Fprintf(w, "%s  %s %s: %s after %v, run %d%s%s\n", clock(run.Began), run.Controller, firstLine(run.Key), outcomeOf(run),
		run.Took.Round(time.Microsecond), run.Number, waited(run), nextLook(run))
	for _, c := range run.Causes {
		from := ""
		if c.From != "" {
			from = ", before that at " + c.From
		}
		fmt.Fprintf(w, "    cause   %s%s\n", firstLine(c.String()), from)
	}
	for _, write := range run.Writes {
		fmt.Fprintf(w, "    write   %s\n", firstLine(writeText(&write)))
	}
	if run.MoreWrites > 0 {
		fmt.Fprintf(w, "    write   and %d more\n", run.MoreWrites)
	}
	for _, reason := range run.Reasons {
		fmt.Fprintf(w, "    reason  %s: %s\n", reason.Code, firstLine(reason.String()))
	}
	if run.Runs > 1 {
		fmt.Fprintf(w, "    and %d more runs that ended alike, the last at %s\n", run.Runs-1, clock(run.Last))
	}
}

func outcomeOf(run *runs.Run) string {
	if run.Error == "" {
		return string(run.Outcome)
	}
	return fmt.Sprintf("%s (%s)", run.Outcome, firstLine(run.Error))
}

// waited says for what a run waited, leaving out what is not worth a word.
func waited(run *runs.Run) string {
	var parts []string
	for _, part := range []struct {
		d    time.Duration
		what string
	}{
		{run.Wait.Delay, cmp.Or(map[bool]string{true: "for the rate limit"}[run.Attempt > 0], "for its time")},
		{run.Wait.Before, "for the run before and its writes"}, {run.Wait.Queue, "in the queue"},
	} {
		if part.d >= time.Millisecond {
			parts = append(parts, fmt.Sprintf("%v %s", part.d.Round(time.Millisecond), part.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ", waited " + strings.Join(parts, ", ")
}

// writeText describes a write in one line.
func writeText(w *runs.Write) string {
	text := w.Verb + " " + w.Object.String()
	if w.Subresource != "" {
		text += " (" + w.Subresource + ")"
	}
	switch {
	case w.Code != 0 && w.Unknown:
		text += fmt.Sprintf(", answered with %d", w.Code)
	case w.Code != 0:
		text += fmt.Sprintf(", refused with %d", w.Code)
	case w.Unknown:
		text += ", no answer"
	case w.Version != "":
		text += " at " + w.Version
	}
	if len(w.Fields) > 0 {
		text += ": " + strings.Join(w.Fields, ", ")
	}
	if w.MoreFields > 0 {
		text += fmt.Sprintf(" and %d more", w.MoreFields)
	}
	return text
}

// writeOrigins writes the chain of causes of a run.
func writeOrigins(w io.Writer, all []runs.Origin, indent string) {
	for _, o := range all {
		if o.Run == nil {
			fmt.Fprintf(w, "%s└ %s: %s\n", indent, firstLine(o.Cause.String()), o.NotKnown)
			continue
		}
		text := ""
		if o.Write != nil {
			text = ": " + writeText(o.Write)
		}
		fmt.Fprintf(w, "%s└ %s  %s %s, run %d%s\n", indent, clock(o.Run.Began), o.Run.Controller, firstLine(o.Run.Key), o.Run.Number, firstLine(text))
		writeOrigins(w, o.Origins, indent+"  ")
	}
}
