// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/object"
)

// objectView is the view of an object.
type objectView struct {
	Kind   string
	Name   string // with the namespace
	Mark   mark
	Answer explain.Answer
	Chain  []step
	Graph  *graph
	Below  tree
	Time   *timeline
	Runs   []runRow
	Open   *runView // the run that the address chooses
	NoRun  uint64   // the number of a chosen run that is not recorded
	At     *moment  // the time that the address chooses
	Hidden []string // kinds below that the viewer may not get
	Self   string   // the address without parameters
}

// told are the facts about an object and the answer that they give.
type told struct {
	facts  explain.Facts
	answer explain.Answer
}

// makeObject makes the view of an object.
func (p *Page) makeObject(r *http.Request, who Viewer) (title string, data any, err error) {
	a, err := parseAddress(r.PathValue("group"), r.PathValue("kind"), r.PathValue("namespace"), r.PathValue("name"))
	if err != nil {
		return "", nil, problemf(http.StatusBadRequest, "%v", err)
	}
	chosen, err := parseChoice(r.URL.Query())
	if err != nil {
		return "", nil, problemf(http.StatusBadRequest, "%v", err)
	}
	resource, err := p.resource(r.Context(), a)
	if err != nil {
		return "", nil, err
	}
	if err := mayGet(r.Context(), who, resource, a.key); err != nil {
		return "", nil, err
	}
	type key struct {
		resource object.Resource
		key      object.Key
	}
	t, err := of(r.Context(), &p.memo, key{resource, a.key}, func(ctx context.Context) (told, error) {
		facts, err := p.gatherer().Facts(ctx, resource, a.key)
		return told{facts, explain.Tell(facts)}, err
	})
	if err != nil {
		return "", nil, problemf(http.StatusBadGateway, "%v", err)
	}
	title = a.key.Name + " · " + resource.Kind
	if t.answer.Code == explain.CodeGone && len(t.facts.Runs) == 0 {
		return title, nil, problemf(http.StatusNotFound, "%s %s does not exist, and the record has no run about it", resource.Kind, a.key)
	}
	hidden := p.hide(r.Context(), who, &t)
	v := p.viewObject(&t, address{resource.Group, resource.Plural, a.key}, chosen)
	v.Hidden = hidden
	return title, v, nil
}

// resource returns the resource of an address.
func (p *Page) resource(ctx context.Context, a address) (object.Resource, error) {
	resource, known, err := p.kinds.named(ctx, a.group, a.kind)
	switch {
	case err != nil:
		return resource, problemf(http.StatusBadGateway, "the API server does not say which kinds it serves: %v", err)
	case !known:
		return resource, problemf(http.StatusNotFound, "the API server serves no kind %q in the group %q", a.kind, a.group)
	case resource.Namespaced && a.key.Namespace == "":
		return resource, problemf(http.StatusNotFound, "each %s is in a namespace; want /o/GROUP/PLURAL/NAMESPACE/NAME", resource.Kind)
	case !resource.Namespaced && a.key.Namespace != "":
		return resource, problemf(http.StatusNotFound, "no %s is in a namespace; want %q in its place", resource.Kind, clusterScoped)
	}
	return resource, nil
}

// viewObject makes the view of an answer.
func (p *Page) viewObject(t *told, a address, chosen choice) objectView {
	self := p.options.Base + a.path()
	v := objectView{
		Kind: t.answer.Object.Kind, Name: t.facts.Object.Ref().Key.String(), Mark: markOf(t.answer.Code), Answer: t.answer, Self: self,
		Below: treeOf(t.facts.Below, p.options.Base, self, chosen), Runs: runRows(t.facts.Runs, self, chosen),
	}
	v.Chain = stepsOf(&t.answer, self)
	v.Graph = graphOf(v.Chain)
	if chosen.run.number != 0 {
		if v.Open = openRun(t.facts.Runs, chosen.run, p.options.Base, self); v.Open == nil {
			v.NoRun = chosen.run.number
		}
	}
	v.Time, v.At = timelineOf(t, self, chosen)
	return v
}

// markOf returns the mark of an answer's code.
func markOf(code string) mark {
	switch code {
	case explain.CodeAllIsWell:
		return well()
	case explain.CodeNotMuch, explain.CodeGone:
		return unsure()
	}
	return trouble()
}

// step is a step of the chain of causes.
type step struct {
	explain.Step
	Link string // opens the run
}

// stepsOf returns the chain of an answer, from the first cause on.
func stepsOf(answer *explain.Answer, self string) (all []step) {
	for _, s := range answer.Chain {
		one := step{Step: s}
		if s.Run != 0 {
			one.Link = self + choice{run: idOf(s.Run, s.At)}.query()
		}
		all = append(all, one)
	}
	return all
}

// runRow is a run in the list of runs.
type runRow struct {
	Number     uint64
	Controller string
	Key        string
	Began      time.Time
	Took       time.Duration
	Outcome    string
	Failed     bool
	Writes     int
	Times      int // counted in one entry, if more than one
	Link       string
	Open       bool
}

// mostRunRows is how many runs a view lists.
const mostRunRows = 30

func runRows(all []explain.Traced, self string, chosen choice) (rows []runRow) {
	for i := range all[:min(len(all), mostRunRows)] {
		run := &all[i].Run
		row := runRow{
			Number: run.Number, Controller: run.Controller, Key: run.Key, Began: run.Last, Took: run.Took, Outcome: string(run.Outcome),
			Failed: run.Error != "", Writes: len(run.Writes) + run.MoreWrites, Link: self + choice{run: idOf(run.Number, run.Began), at: chosen.at}.query(), Open: chosen.run.names(run),
		}
		if run.Runs > 1 {
			row.Times = run.Runs
		}
		rows = append(rows, row)
	}
	return rows
}
