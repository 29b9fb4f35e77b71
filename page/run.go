// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/runs"
)

// runView is an opened run: why it ran, what it wrote, and what it did not do.
type runView struct {
	runs.Run
	Waits   []string
	Origins []originView
	Written []writeView
	Close   string // the address without the run
}

// originView is a cause of a run, and what led to it.
type originView struct {
	Depth      int
	Cause      string
	Controller string // of the run that made the change; empty: not known
	Run        uint64
	Link       string
	Object     string // the address of the object that changed
	NotKnown   string
}

// writeView is a write with the address of its object.
type writeView struct {
	runs.Write
	Name   string
	Link   string
	Result string
}

// mostOrigins bounds the causes that an opened run shows.
const mostOrigins = 40

// openRun returns the view of a run, or nil if the facts do not have it.
func openRun(all []explain.Traced, id runID, base, self string) *runView {
	for i := range all {
		if !id.names(&all[i].Run) {
			continue
		}
		v := &runView{Run: all[i].Run, Waits: waits(&all[i].Run), Close: self}
		v.addOrigins(all[i].Origins, 0, base, self)
		for _, w := range v.Writes {
			v.Written = append(v.Written, writeView{Write: w, Name: w.Object.String(), Link: linkOf(w.Object, base), Result: resultOf(&w)})
		}
		return v
	}
	return nil
}

// addOrigins adds causes and what led to them, the deeper ones after the one that they led to.
func (v *runView) addOrigins(all []runs.Origin, depth int, base, self string) {
	for i := range all {
		if len(v.Origins) == mostOrigins {
			return
		}
		o := &all[i]
		one := originView{Depth: depth, Cause: o.Cause.String(), NotKnown: o.NotKnown, Object: linkOf(o.Cause.Object, base)}
		if o.Run != nil {
			one.Controller, one.Run, one.Link = o.Run.Controller, o.Run.Number, self+choice{run: idOf(o.Run.Number, o.Run.Began)}.query()
		}
		v.Origins = append(v.Origins, one)
		v.addOrigins(o.Origins, depth+1, base, self)
	}
}

// linkOf returns the address of an object; "" if it is none.
func linkOf(o runs.Object, base string) string {
	if o.Kind == "" || checkPart(o.Name) != nil {
		return ""
	}
	return base + address{group: o.Group, kind: o.Kind, key: o.Ref().Key}.path()
}

// resultOf says what came of a write.
func resultOf(w *runs.Write) string {
	switch {
	case w.Code != 0 && w.Unknown:
		return fmt.Sprintf("answered with %d", w.Code) // a webhook that fails, for example; nothing or all may be written
	case w.Code != 0:
		return fmt.Sprintf("refused with %d", w.Code)
	case w.Unknown:
		return "no answer"
	case w.Version != "":
		return "made version " + w.Version
	case w.Verb == "delete" || w.Verb == "deletecollection":
		return "done"
	}
	return "changed nothing"
}

// waits says for what a run waited, and how long.
func waits(run *runs.Run) (texts []string) {
	why := "the time that the run before asked for"
	if run.Attempt > 0 {
		why = "the rate limit"
	}
	for _, wait := range []struct {
		d    time.Duration
		text string
	}{
		{run.Wait.Delay, why}, {run.Wait.Before, "the run before and its writes"}, {run.Wait.Queue, "a worker"},
	} {
		if wait.d >= time.Millisecond {
			texts = append(texts, shortTime(wait.d)+" for "+wait.text)
		}
	}
	return texts
}
