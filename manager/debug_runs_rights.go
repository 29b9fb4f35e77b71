// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/runs"
)

// The paths whose rights open the record of runs. A user with the right to get runsPath sees all of it. A user with the
// right to get objectsPath sees the runs about one object that the user may get, and in them the names of further
// objects that the user may get.
const (
	runsPath    = "/debug/runs"
	objectsPath = "/debug/runs/objects"
)

// mostRights bounds the rights that are looked up for one page.
const mostRights = 64

// sight is what a user may see in the record of runs.
type sight struct {
	all    bool
	viewer *serving.Viewer
	kinds  *kinds
	asked  runs.Object // that the user may get by its name
	known  map[runs.Object]bool
	hidden int // objects whose names were left out

	hiddenRuns map[uint64]bool // runs whose objects the user may not get, by number
}

// sightOf returns what the user of a request may see in the record: everything, or what is about one object.
func (m *Manager) sightOf(r *http.Request, q *runs.Query) (*sight, error) {
	about := q.Object
	s := &sight{viewer: serving.ViewerOf(r), kinds: &m.kinds, asked: about, known: map[runs.Object]bool{}, hiddenRuns: map[uint64]bool{}}
	var err error
	if s.all, err = s.viewer.MayGetPath(r.Context(), runsPath); err != nil || s.all {
		return s, err
	}
	if about.Kind == "" || about.Name == "" {
		return nil, forbidden(fmt.Sprintf("runs about one object are shown to users who may get it; want kind=KIND and name=NAME, with group=GROUP and namespace=NAMESPACE if it has them (all runs need the right to get path %q)", runsPath))
	}
	if q.Contains != "" || q.Key != "" { // whether there is an answer would say that a hidden name is there
		return nil, forbidden(fmt.Sprintf("a search by contains or key needs the right to get path %q", runsPath))
	}
	may, err := s.mayGet(r.Context(), about)
	if err == nil && !may {
		err = forbidden(fmt.Sprintf("the user may not get %s, and may not get path %q", about, runsPath))
	}
	return s, err
}

// forbidden is the error for a user without a right.
type forbidden string

func (f forbidden) Error() string { return string(f) }

// refuseSight answers a request whose user may not see what it asks for.
func refuseSight(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if _, lacks := errors.AsType[forbidden](err); lacks {
		code = http.StatusForbidden
	}
	http.Error(w, serving.Printable(err.Error()), code)
}

// mayGet asks for the right to get an object.
func (s *sight) mayGet(ctx context.Context, o runs.Object) (bool, error) {
	resource, served := s.kinds.resource(ctx, o.Group, o.Kind)
	if !served || !resource.Namespaced && o.Namespace != "" {
		return false, nil
	}
	return s.viewer.MayGet(ctx, resource, o.Ref().Key)
}

// sees reports whether the name of an object may be shown: the user may get all objects of its kind in its namespace. One
// question for each name would cost the API server too much.
func (s *sight) sees(ctx context.Context, o runs.Object) bool {
	if s.all || o == (runs.Object{}) || o.Kind == s.asked.Kind && o.Group == s.asked.Group && o.Ref().Key == s.asked.Ref().Key {
		return true
	}
	of := runs.Object{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace}
	may, known := s.known[of]
	if !known && len(s.known) < mostRights {
		may, _ = s.mayGet(ctx, of) // what is not known is not shown
		s.known[of] = may
	}
	return may
}

// show returns an object as the user may see it: without its name if it is hidden.
func (s *sight) show(ctx context.Context, o runs.Object) (shown runs.Object, hidden bool) {
	if s.sees(ctx, o) {
		return o, false
	}
	s.hidden++
	return runs.Object{Group: o.Group, Kind: o.Kind}, true
}

// Texts in place of what is hidden.
const (
	hiddenKey   = "hidden"
	hiddenError = "hidden: the user may not get the object of this run"

	hiddenTrouble = "why is shown to users who may see all runs"
)

// hideIn takes out of a run what the user may not see.
func (s *sight) hideIn(ctx context.Context, run *runs.Run) {
	if s.all {
		return
	}
	var hidden bool
	if run.Object, hidden = s.show(ctx, run.Object); hidden || run.Object == (runs.Object{}) {
		s.hiddenRuns[run.Number] = true
		s.hideKey(run)
	}
	run.Causes = each(run.Causes, func(c *runs.Cause) {
		if c.Object, hidden = s.show(ctx, c.Object); hidden {
			c.From, c.Version = "", ""
		}
	})
	run.Writes = each(run.Writes, func(w *runs.Write) {
		if w.Object, hidden = s.show(ctx, w.Object); hidden {
			w.Version, w.Fields = "", nil
		}
	})
	run.Reasons = each(run.Reasons, func(r *runs.Reason) { r.Until, _ = s.show(ctx, r.Until) })
	run.Reasons = slices.DeleteFunc(run.Reasons, func(r runs.Reason) bool {
		_, hidden := s.show(ctx, r.About)
		return hidden // its text and its parameters are about the object too
	})
}

// hideInState takes out of the state of a loop what the user may not see. The key is that of the object that the user asked for.
func (s *sight) hideInState(ctx context.Context, state *runs.KeyState) {
	if s.all {
		return
	}
	if state.Unseen != nil {
		write := *state.Unseen
		object, hidden := s.show(ctx, write.Object)
		if write.Object = object; hidden {
			write.Version = ""
		}
		state.Unseen = &write
	}
	for i := range state.Informers {
		state.Informers[i].Trouble = hiddenTrouble // an error may name the rights and the addresses of the manager
	}
}

// hideKey takes out of a run what it says about the object of its key: the key, the error, and the reasons that are not
// about the object that the user asked for.
func (s *sight) hideKey(run *runs.Run) {
	run.Key = hiddenKey
	if run.Error != "" {
		run.Error = hiddenError
	}
	var about []runs.Reason
	for _, reason := range run.Reasons {
		if o := reason.About; o.Kind == s.asked.Kind && o.Group == s.asked.Group && o.Ref().Key == s.asked.Ref().Key {
			about = append(about, reason)
		}
	}
	run.Reasons = about
}

// hideOrigins takes what the user may not see out of the chain of causes of a run.
func (s *sight) hideOrigins(ctx context.Context, all []runs.Origin) {
	if s.all {
		return
	}
	for i := range all {
		o := &all[i]
		var hidden bool
		if o.Cause.Object, hidden = s.show(ctx, o.Cause.Object); hidden {
			o.Cause.From, o.Cause.Version = "", ""
		}
		if o.Run == nil {
			continue
		}
		run := *o.Run
		at := -1
		for k := range run.Writes {
			if o.Write == &run.Writes[k] {
				at = k
			}
		}
		if s.hideIn(ctx, &run); at >= 0 {
			o.Write = &run.Writes[at]
		}
		o.Run = &run
		s.hideOrigins(ctx, o.Origins)
	}
}

// each returns a copy of a list whose elements a function has changed.
func each[T any](all []T, change func(*T)) []T {
	changed := append([]T(nil), all...)
	for i := range changed {
		change(&changed[i])
	}
	return changed
}
