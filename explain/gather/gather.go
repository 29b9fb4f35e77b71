// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/watch/trouble"
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
	if state != nil {
		facts.Trouble = trouble.Now(kindOf(r), state)
		facts.Below, facts.Unread = g.below(ctx, r, key, state)
		if facts.Events, err = g.eventsAbout(ctx, key, uidOf(state)); err != nil {
			facts.Unread = append(facts.Unread, "Events: "+err.Error())
		}
	}
	g.addRuns(ctx, &facts)
	return facts, nil
}

// addRuns adds the runs of the object, and of the first objects below it that are no Pods.
func (g Gatherer) addRuns(ctx context.Context, facts *explain.Facts) {
	found, err := g.Record.About(ctx, facts.Object)
	if err != nil {
		facts.NotRecorded = err.Error()
		return
	}
	facts.Recorded = true
	facts.Unread = append(facts.Unread, found.Unread...)
	facts.Present, facts.Runs, facts.Since = found.Present, found.Runs, found.Stats.Since
	asked := 0
	for _, p := range facts.Below {
		if p.Object.Kind == "Pod" || asked == mostAsked {
			continue
		}
		asked++
		if found, err = g.Record.About(ctx, p.Object); err == nil {
			facts.Present, facts.Runs = append(facts.Present, found.Present...), append(facts.Runs, found.Runs...)
		}
	}
	facts.Present = once(facts.Present, identityOf)
	facts.Runs = once(facts.Runs, func(r *explain.Traced) identity { return identityOf(&r.Run) })
	slices.SortStableFunc(facts.Runs, func(a, b explain.Traced) int { return b.Last.Compare(a.Last) })
}

// identity identifies a run among those of several managers, each of which numbers its own.
type identity struct {
	controller, key string
	number          uint64
	began           int64
}

func identityOf(r *runs.Run) identity {
	return identity{r.Controller, r.Key, r.Number, r.Began.UnixNano()}
}

// once leaves out what has the identity of an earlier one.
func once[T any](all []T, number func(*T) identity) []T {
	known := map[identity]bool{}
	return slices.DeleteFunc(all, func(one T) bool {
		n := number(&one)
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
