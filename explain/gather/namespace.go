// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// Bounds of what is read of a namespace.
const (
	mostChangedRuns  = 2000
	mostListed       = 500  // objects of a kind
	mostListedEvents = 1000 // Events of the namespace
	listsAtOnce      = 4
	// earlier is how much longer ago than the time that is asked for a run may be that began what goes on.
	earlier = 10 * time.Minute
)

// Changed collects the facts about what changed in a namespace since a time. An empty namespace stands for all. kinds
// are those that the server serves: of those that can be listed and watched, the metadata of the first 500 objects of
// each is read. The Namespace itself is read too.
func (g Gatherer) Changed(ctx context.Context, kinds []client.Served, namespace string, since time.Time) explain.NamespaceFacts {
	facts := explain.NamespaceFacts{Now: time.Now(), Since: since, Namespace: namespace}
	// The record, the Events and the lists are asked at the same time: none needs another's answer.
	var asking sync.WaitGroup
	q := runs.Query{Namespace: namespace, Wrote: true, Since: since.Add(-earlier), Limit: mostChangedRuns}
	asking.Go(func() {
		found, err := g.Record.Newest(ctx, q)
		if err != nil {
			facts.NotRecorded = err.Error()
			return
		}
		facts.Recorded, facts.Kept = true, found.Stats.Since
		for i := range found.Runs {
			facts.Runs = append(facts.Runs, found.Runs[i].Run)
		}
		if found.More {
			facts.Kept = facts.Runs[len(facts.Runs)-1].Last
		}
	})
	var noEvents error
	asking.Go(func() { facts.Events, noEvents = g.eventsOf(ctx, namespace) })
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k client.Served) bool {
		return !k.Can("list") || !k.Can("watch") || !k.Namespaced || k.Kind == events.Kind
	})
	lists := g.listEach(ctx, kinds, func(ctx context.Context, r object.Resource) ([]*metadata, bool, error) {
		return g.listMetadata(ctx, r, namespace, "", mostListed)
	})
	asking.Wait()
	if noEvents != nil {
		facts.Unread = append(facts.Unread, "Events: "+noEvents.Error())
	}
	if namespace != "" {
		// It is no object in a namespace, so the lists do not have it.
		if itself, err := g.metadataOf(ctx, namespaces, namespace); err == nil {
			lists.objects = append(lists.objects, itself)
		} else if !apierrors.IsNotFound(err) {
			facts.Unread = append(facts.Unread, "who changed the Namespace itself: "+err.Error())
		}
	}
	facts.Objects = lists.changed(facts.Runs, since)
	facts.Unread = append(facts.Unread, lists.unread("authors of changes", "authors of changes")...)
	return facts
}

// listed is what the lists of all kinds have.
type listed struct {
	mu        sync.Mutex
	objects   []*metadata
	forbidden []string // plurals
	cut       []string
	failed    []string // sentences
}

// listEach lists the objects of each kind, several kinds at a time. The order of the answer is that of names.
func (g Gatherer) listEach(ctx context.Context, kinds []client.Served, list func(context.Context, object.Resource) ([]*metadata, bool, error)) *listed {
	all, turns := &listed{}, make(chan struct{}, listsAtOnce)
	var running sync.WaitGroup
	for _, kind := range kinds {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			items, more, err := list(ctx, kind.Resource)
			all.add(kind.Resource, items, more, err)
		})
	}
	running.Wait()
	slices.SortFunc(all.objects, func(a, b *metadata) int {
		return cmp.Or(cmp.Compare(a.of.Kind, b.of.Kind), cmp.Compare(a.of.Group, b.of.Group), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return all
}

func (l *listed) add(r object.Resource, items []*metadata, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case apierrors.IsForbidden(err):
		l.forbidden = append(l.forbidden, r.Plural)
	case err != nil:
		l.failed = append(l.failed, fmt.Sprintf("%s: %v", r.Plural, err))
	case more:
		l.cut = append(l.cut, r.Plural)
	}
	l.objects = append(l.objects, items...)
}

// changed returns the objects that some program has changed since a time, and those of the causes of runs.
func (l *listed) changed(of []runs.Run, since time.Time) (all []explain.Known) {
	causes := map[types.UID]bool{}
	for i := range of {
		for _, c := range of[i].Causes {
			causes[c.Object.UID] = true
		}
	}
	for _, o := range l.objects {
		if !causes[o.UID] && !slices.ContainsFunc(o.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Time != nil && !m.Time.Time.Before(since) }) {
			continue
		}
		known, err := o.known()
		if err != nil {
			l.failed = append(l.failed, err.Error())
			continue
		}
		all = append(all, known)
	}
	return all
}

// unread says what is missing, in an order that does not depend on which answer came first. what is missing of kinds that
// could not be listed, and beyond of those with too many objects.
func (l *listed) unread(what, beyond string) (all []string) {
	slices.Sort(l.failed)
	slices.Sort(l.cut)
	slices.Sort(l.forbidden)
	for _, failure := range l.failed {
		all = append(all, what+" of "+failure)
	}
	if len(l.cut) > 0 {
		all = append(all, fmt.Sprintf("%s beyond the first %d of each of: %s", beyond, mostListed, strings.Join(l.cut, ", ")))
	}
	if len(l.forbidden) > 0 {
		all = append(all, what+" of kinds that the user may not list: "+strings.Join(l.forbidden, ", "))
	}
	return all
}

// namespaces is the kind of namespaces. Every server serves it.
var namespaces = object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"}

// eventsOf returns the Events of a namespace.
func (g Gatherer) eventsOf(ctx context.Context, namespace string) (all []explain.NamespaceEvent, err error) {
	found, err := g.listEvents(ctx, namespace, "", mostListedEvents)
	for i := range found {
		about := &found[i].InvolvedObject
		version, err := schema.ParseGroupVersion(about.APIVersion)
		if err != nil {
			continue // an Event may be about anything
		}
		all = append(all, explain.NamespaceEvent{Event: eventOf(&found[i]), About: runs.Object{
			Group: version.Group, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name, UID: about.UID,
		}})
	}
	return all, err
}
