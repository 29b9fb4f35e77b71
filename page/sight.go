// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"slices"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// sight is what a viewer may see in one view: objects of kinds that the viewer may get in their namespaces.
type sight struct {
	ctx   context.Context //nolint:containedctx // of one view
	page  *Page
	who   Viewer
	known map[runs.Object]bool // by group, kind and namespace
	shown runs.Object          // the object of the view, which the viewer may get by its name
}

func newSight(ctx context.Context, p *Page, who Viewer) *sight {
	return &sight{ctx: ctx, page: p, who: who, known: map[runs.Object]bool{}}
}

// sees reports whether the viewer may see an object. A right that is not known is none.
func (s *sight) sees(o runs.Object) bool {
	if s.shown.Kind != "" && o.Kind == s.shown.Kind && o.Group == s.shown.Group && o.Ref().Key == s.shown.Ref().Key {
		return true
	}
	of := runs.Object{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace}
	may, known := s.known[of]
	if !known {
		if resource, served, err := s.page.kinds.named(s.ctx, o.Group, o.Kind); err == nil && served {
			may, _ = s.who.MayGet(s.ctx, resource, object.Key{Namespace: o.Namespace})
		}
		s.known[of] = may
	}
	return may
}

// hidden returns the kinds of which objects were left out.
func (s *sight) hidden() (kinds []string) {
	for of, may := range s.known {
		if !may && of.Kind != "" && !slices.Contains(kinds, of.Kind) {
			kinds = append(kinds, of.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// ofNamespace returns facts without what the viewer may not see. The facts stay as they are: other viewers share them.
func (s *sight) ofNamespace(f explain.NamespaceFacts) explain.NamespaceFacts {
	if _, all := s.who.(everything); all {
		return f
	}
	f.Objects = keep(f.Objects, func(k *explain.Known) bool { return s.sees(k.Object) })
	f.Events = keep(f.Events, func(e *explain.NamespaceEvent) bool {
		return s.sees(runs.Object{Kind: "Event", Namespace: e.About.Namespace}) && s.sees(e.About)
	})
	all := f.Runs
	f.Runs = nil
	for _, run := range all {
		if s.ofRun(&run); len(run.Writes) > 0 {
			f.Runs = append(f.Runs, run)
		}
	}
	return f
}

// hide takes out of the facts about an object what the viewer may not get, and tells the answer again. It returns the names
// of the kinds that are left out. What is remembered of the facts stays as it is.
func (p *Page) hide(ctx context.Context, who Viewer, t *told) (hidden []string) {
	if _, all := who.(everything); all {
		return nil
	}
	s := newSight(ctx, p, who)
	s.shown = t.facts.Object
	f := &t.facts
	parts := func(all []explain.Part) []explain.Part {
		return keep(all, func(part *explain.Part) bool { return s.sees(part.Object) })
	}
	f.Above, f.Below = parts(f.Above), parts(f.Below)
	f.Placement = s.ofPlacement(f.Placement)
	if !s.sees(runs.Object{Kind: "Event", Namespace: f.Object.Namespace}) {
		f.Events = nil
	}
	f.Runs = each(f.Runs, func(run *explain.Traced) {
		s.nameless(&run.Run)
		run.Origins = s.namelessOrigins(run.Origins)
	})
	f.Present = each(f.Present, s.nameless)
	f.Present = keep(f.Present, func(run *runs.Run) bool { return len(run.Reasons) > 0 })
	f.Loops = keep(f.Loops, func(state *runs.KeyState) bool { return s.sees(state.Object) })
	f.Loops = each(f.Loops, func(state *runs.KeyState) {
		if state.Unseen == nil {
			return
		}
		write := *state.Unseen
		if write.Object = s.named(write.Object); write.Object.Name == "" {
			write.Version = ""
		}
		state.Unseen = &write
	})
	if hidden = s.hidden(); len(hidden) > 0 {
		t.answer = explain.Tell(*f)
	}
	return hidden
}

// ofPlacement returns what is known of the Nodes for a Pod without the Nodes that the viewer may not see, and without what
// Pods of other namespaces and volumes say, if the viewer may not see those.
func (s *sight) ofPlacement(p *explain.Placement) *explain.Placement {
	if p == nil {
		return nil
	}
	own := *p
	own.Nodes = keep(p.Nodes, func(n *explain.NodeFit) bool { return s.sees(n.Node) })
	if len(own.Nodes) < len(p.Nodes) {
		own.More, own.MoreRules = 0, nil
		own.Unsure = []string{"which rule each Node fails: you may not get Nodes"}
	}
	p = &own
	for _, kind := range p.DecidedBy() {
		if !s.sees(runs.Object{Kind: kind}) {
			p = p.WithoutBy(kind)
		}
	}
	return p
}

// Texts in place of what the viewer may not see.
const (
	notShown      = "an object that is not shown"
	errorNotShown = "not shown, as you may not get the object of this run"
)

// ofRun takes out of a copy of a run the objects that the viewer may not see.
func (s *sight) ofRun(run *runs.Run) {
	run.Writes = keep(run.Writes, func(w *runs.Write) bool { return s.sees(w.Object) })
	run.Causes = keep(run.Causes, func(c *runs.Cause) bool { return c.Object == (runs.Object{}) || s.sees(c.Object) })
	s.ofKey(run)
}

// ofKey takes out of a copy of a run what it says about the object of its key, if the viewer may not see that.
func (s *sight) ofKey(run *runs.Run) {
	if run.Object == (runs.Object{}) || s.sees(run.Object) {
		run.Reasons = keep(run.Reasons, func(r *runs.Reason) bool { return r.About == (runs.Object{}) || s.sees(r.About) })
		return
	}
	run.Object, run.Key = runs.Object{}, notShown
	run.Reasons = keep(run.Reasons, func(r *runs.Reason) bool { return r.About != (runs.Object{}) && s.sees(r.About) })
	if run.Error != "" {
		run.Error = errorNotShown
	}
}

// nameless takes out of a copy of a run the names of the objects that the viewer may not see. Their kinds stay, as
// /debug/runs shows them to the same users.
func (s *sight) nameless(run *runs.Run) {
	run.Writes = each(run.Writes, func(w *runs.Write) {
		if w.Object = s.named(w.Object); w.Object.Name == "" {
			w.Version, w.Fields = "", nil
		}
	})
	run.Causes = each(run.Causes, s.namelessCause)
	run.Reasons = each(run.Reasons, func(r *runs.Reason) { r.Until = s.named(r.Until) })
	s.ofKey(run)
}

func (s *sight) namelessCause(c *runs.Cause) {
	if c.Object = s.named(c.Object); c.Object.Name == "" {
		c.From, c.Version = "", ""
	}
}

// named returns an object, without its name if the viewer may not see it.
func (s *sight) named(o runs.Object) runs.Object {
	if o == (runs.Object{}) || s.sees(o) {
		return o
	}
	return runs.Object{Group: o.Group, Kind: o.Kind}
}

// namelessOrigins returns a copy of a chain of causes without the names that the viewer may not see.
func (s *sight) namelessOrigins(all []runs.Origin) []runs.Origin {
	return each(all, func(o *runs.Origin) {
		s.namelessCause(&o.Cause)
		if o.Run != nil {
			run := *o.Run
			s.nameless(&run)
			o.Run = &run
		}
		if o.Write != nil {
			write := *o.Write
			if write.Object = s.named(write.Object); write.Object.Name == "" {
				write.Version, write.Fields = "", nil
			}
			o.Write = &write
		}
		o.Origins = s.namelessOrigins(o.Origins)
	})
}

// each returns a copy of a list whose elements a function has changed.
func each[T any](all []T, change func(*T)) []T {
	changed := slices.Clone(all)
	for i := range changed {
		change(&changed[i])
	}
	return changed
}

// keep returns a copy of a list with the elements that a function accepts.
func keep[T any](all []T, accepts func(*T) bool) (kept []T) {
	for i := range all {
		if accepts(&all[i]) {
			kept = append(kept, all[i])
		}
	}
	return kept
}
