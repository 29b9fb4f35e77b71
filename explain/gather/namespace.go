// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/internal/managedfields"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/wire"
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
	lists := g.listEach(ctx, kinds, func(ctx context.Context, r object.Resource) ([]map[string]any, bool, error) {
		return g.listMetadata(ctx, r, namespace)
	})
	asking.Wait()
	if noEvents != nil {
		facts.Unread = append(facts.Unread, "Events: "+noEvents.Error())
	}
	if namespace != "" {
		if itself, err := g.namespaceItself(ctx, namespace); err == nil {
			lists.objects = append(lists.objects, itself)
		} else if !apierrors.IsNotFound(err) {
			facts.Unread = append(facts.Unread, "who changed the Namespace itself: "+err.Error())
		}
	}
	facts.Objects = changedObjects(lists.objects, facts.Runs, since)
	facts.Unread = append(facts.Unread, lists.unread("authors of changes", "authors of changes")...)
	return facts
}

// changedObjects returns the objects that some program has changed since a time, and those of the causes of runs.
func changedObjects(all []explain.Known, of []runs.Run, since time.Time) []explain.Known {
	causes := map[types.UID]bool{}
	for i := range of {
		for _, c := range of[i].Causes {
			causes[c.Object.UID] = true
		}
	}
	return slices.DeleteFunc(all, func(k explain.Known) bool {
		if causes[k.Object.UID] {
			return false
		}
		return !slices.ContainsFunc(managedfields.Of(k.State), func(m managedfields.Entry) bool { return !m.Time.IsZero() && !m.Time.Before(since) })
	})
}

// listed is what the lists of all kinds have.
type listed struct {
	mu        sync.Mutex
	objects   []explain.Known
	forbidden []string // plurals
	cut       []string
	failed    []string // sentences
}

// listEach lists the objects of each kind, several kinds at a time. The order of the answer is that of names.
func (g Gatherer) listEach(ctx context.Context, kinds []client.Served, list func(context.Context, object.Resource) ([]map[string]any, bool, error)) *listed {
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
	slices.SortFunc(all.objects, func(a, b explain.Known) int {
		return cmp.Or(cmp.Compare(a.Object.String(), b.Object.String()), cmp.Compare(a.Object.UID, b.Object.UID))
	})
	return all
}

func (l *listed) add(r object.Resource, items []map[string]any, more bool, err error) {
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
	for _, item := range items {
		l.objects = append(l.objects, explain.Known{Object: identify(r, item), State: item})
	}
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

// metadataAlone asks for lists of PartialObjectMetadata, which have no values of Secrets.
const metadataAlone = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// listMetadata returns the metadata of the first objects of a kind, and whether there are more.
func (g Gatherer) listMetadata(ctx context.Context, r object.Resource, namespace string) (items []map[string]any, more bool, err error) {
	return page(ctx, g.Client.Request(http.MethodGet).Resource(r).Namespace(namespace).Param("limit", fmt.Sprint(mostListed)).Accept(metadataAlone), r)
}

// namespaces is the kind of namespaces. Every server serves it.
var namespaces = object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"}

// namespaceItself returns the metadata of a Namespace. It is no object in a namespace, so the lists do not have it.
func (g Gatherer) namespaceItself(ctx context.Context, name string) (explain.Known, error) {
	answer, err := g.Client.Request(http.MethodGet).Resource(namespaces).Name(name).Accept("application/json").Do(ctx)
	if err != nil {
		return explain.Known{}, err
	}
	var state map[string]any
	if err := json.Unmarshal(answer.Body, &state); err != nil {
		return explain.Known{}, fmt.Errorf("decoding the Namespace %s: %w", name, err)
	}
	return explain.Known{Object: identify(namespaces, state), State: state}, nil
}

// page decodes one page of a list.
//
// Any version will do. A list of the newest state of a kind that does not change waits for etcd to say that it has not, which
// takes the server up to 100 ms where other kinds change (source: k8s.io/apiserver/pkg/storage/cacher/progress): measured at
// 180 changes a second, 98 ms instead of 1.5. A namespace has some 35 kinds. The server's cache is milliseconds late, and it keeps to
// the limit with any version but 0.
func page(ctx context.Context, request *client.Request, r object.Resource) (items []map[string]any, more bool, err error) {
	answer, err := request.Param("resourceVersion", "1").Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan)).Do(ctx)
	if err != nil {
		return nil, false, err
	}
	list, err := wire.List(bytes.NewReader(answer.Body), wire.JSON, 0, func(raw []byte) error {
		var item unstructured.Unstructured
		err := wire.JSON.Decode(raw, &item)
		items = append(items, item.Object)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("decoding the %s: %w", strings.ToLower(r.Plural), err)
	}
	return items, list.Continue != "", nil
}

// eventsOf returns the Events of a namespace.
func (g Gatherer) eventsOf(ctx context.Context, namespace string) (all []explain.NamespaceEvent, err error) {
	items, _, err := page(ctx, g.Client.Request(http.MethodGet).Resource(events).Namespace(namespace).
		Param("limit", fmt.Sprint(mostListedEvents)).Accept("application/json"), events)
	for _, item := range items {
		about := jsontree.Tree{Value: item}.At("involvedObject")
		version, err := schema.ParseGroupVersion(about.Text("apiVersion"))
		if err != nil {
			continue // an Event may be about anything
		}
		all = append(all, explain.NamespaceEvent{Event: eventOf(item), About: runs.Object{
			Group: version.Group, Kind: about.Text("kind"), Namespace: about.Text("namespace"), Name: about.Text("name"), UID: types.UID(about.Text("uid")),
		}})
	}
	return all, err
}
