// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// Gatherer collects facts about objects. It is safe for concurrent use.
type Gatherer struct {
	// Client reads the objects. Its user must be allowed to get them; facts that the user may not list are left out.
	Client *client.Client
	// Record has what controllers did and why.
	Record Record
}

// mostAsked is how many objects below are looked up in the record.
const mostAsked = 4

// Facts collects the facts about an object. An object that does not exist is no error: its State is nil, and the record
// may still have its runs.
func (g Gatherer) Facts(ctx context.Context, r object.Resource, key object.Key) (explain.Facts, error) {
	state, err := g.state(ctx, r, key)
	if err != nil {
		return explain.Facts{}, err
	}
	facts := explain.Facts{
		Now: time.Now(), State: state,
		Object: runs.ObjectOf(object.Ref{Group: r.Group, Kind: r.Kind, Key: key, UID: uidOf(state)}),
	}
	var eventless []string
	var running sync.WaitGroup
	running.Go(func() { facts.Events, eventless = g.eventsAbout(ctx, r.Kind, key, uidOf(state)) })
	var own Found
	var ownErr error
	var asking sync.WaitGroup
	asking.Go(func() { own, ownErr = g.Record.About(ctx, facts.Object) })
	if state != nil {
		facts.Trouble = troubleOf(r, state, facts.Now)
		running.Go(func() { facts.Above = g.above(ctx, key.Namespace, state) })
		facts.Below, facts.Unread = g.below(ctx, r, key, state)
		facts.Below = append(facts.Below, g.nodes(ctx, &facts, kindOf(r))...)
		g.placement(ctx, &facts)
	}
	asking.Wait()
	if ownErr != nil {
		facts.NotRecorded = ownErr.Error()
	} else {
		g.addRuns(ctx, &facts, own)
	}
	if from := facts.Contested(); len(from) > 0 {
		facts.Versions = g.versions(ctx, r, key, state, from)
	}
	running.Wait()
	facts.Unread = append(facts.Unread, eventless...)
	return facts, nil
}

// addRuns adds the runs of the object, and of the first objects below it that are no Pods. own are those of the object.
func (g Gatherer) addRuns(ctx context.Context, facts *explain.Facts, own Found) {
	var about []runs.Object
	for _, p := range facts.Below {
		if p.Object.Kind != "Pod" && p.Object.Kind != "Node" && len(about) < mostAsked {
			about = append(about, p.Object)
		}
	}
	found := make([]Found, len(about))
	var running sync.WaitGroup
	for i := range about {
		running.Go(func() { found[i], _ = g.Record.About(ctx, about[i]) }) // of those that failed there is none
	}
	running.Wait()
	facts.Recorded, facts.Since = true, own.Stats.Since
	facts.Unread = append(facts.Unread, own.Unread...)
	facts.HiddenRuns, facts.HiddenNames = own.HiddenRuns, own.Hidden
	for _, f := range append([]Found{own}, found...) {
		facts.Present, facts.Runs = append(facts.Present, f.Present...), append(facts.Runs, f.Runs...)
		facts.Loops = append(facts.Loops, f.Loops...)
	}
	if facts.State == nil {
		facts.Runs = append(facts.Runs, g.noticed(ctx, facts)...)
	}
	facts.Present = once(facts.Present, (*runs.Run).Identity)
	facts.Runs = once(facts.Runs, func(r *explain.Traced) runs.Identity { return r.Run.Identity() })
	slices.SortStableFunc(facts.Runs, func(a, b explain.Traced) int { return b.Last.Compare(a.Last) })
}

// once leaves out what has the identity of an earlier one.
func once[T any](all []T, of func(*T) runs.Identity) []T {
	known := map[runs.Identity]bool{}
	return slices.DeleteFunc(all, func(one T) bool {
		n := of(&one)
		was := known[n]
		known[n] = true
		return was
	})
}

// state returns the object as the server has it; nil if it does not exist.
func (g Gatherer) state(ctx context.Context, r object.Resource, key object.Key) (map[string]any, error) {
	o, err := client.ForResource[*unstructured.Unstructured](g.Client, r).Get(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", r.Kind, key, err)
	}
	return o.Object, nil
}

func uidOf(state map[string]any) types.UID {
	return types.UID((jsontree.Tree{Value: state}).Text("metadata", "uid"))
}
