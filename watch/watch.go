// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/internal/pause"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

// Host is what a Watch runs on. A manager is one.
type Host interface {
	Client() *client.Client
	InformerFactory() *cache.Factory
	Logger() *slog.Logger
}

// Watch follows kinds and publishes their changes.
type Watch struct {
	host      Host
	options   Options
	log       *slog.Logger
	publisher *publisher
	cursor    cursor
	tags      []byte // the key of the tags of hidden values
	// patience is how long a Watch with Once waits for a server or a sink.
	patience time.Duration

	following sync.Mutex      // held while the followers are changed; guards sure and waiting
	sure      bool            // a discovery found out everything
	waiting   map[string]bool // names of kinds that are not served, and whether the journal knows that

	mu        sync.Mutex
	followers map[place]*follower
	gone      map[place]*legacy // of kinds that are not served any more
	kinds     discovery.Set     // as of the last discovery
	defined   chan struct{}     // holds a signal when a kind has been defined
	soon      time.Duration     // the pause before the next discovery after that; 0: there is none
	outside   outside           // the kinds without namespaces that are left out
	judge     judge             // of Options.Keep
	found     chan struct{}     // closed when the kinds of the first discovery are followed
	tasks     sync.WaitGroup
	counts    counts
}

// place is what one follower follows. A kind that is served in another version is the
// same kind. The object is empty for all objects of the kind.
type place struct{ group, plural, namespace, object string }

// New returns a Watch that runs on h.
func New(h Host, o Options) (*Watch, error) {
	if o.Log == nil {
		o.Log = h.Logger()
	}
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("watching: %w", err)
	}
	w := &Watch{host: h, options: o, log: o.Log, followers: map[place]*follower{}, gone: map[place]*legacy{}, waiting: map[string]bool{}, defined: make(chan struct{}, 1), found: make(chan struct{}), patience: oncePatience}
	w.cursor, w.tags = cursor{o.Journal}, make([]byte, 32)
	_, _ = rand.Read(w.tags) // it never fails
	if o.Journal != nil && o.Journal.KeepsStates() {
		// The tags of hidden values in states of an earlier run are compared with those of this one.
		mac := hmac.New(sha256.New, o.Journal.Key())
		mac.Write([]byte("the tags of hidden values"))
		w.tags = mac.Sum(nil)
	}
	w.judge.condition, w.judge.log = o.Keep, o.Log
	w.publisher = newPublisher(w)
	return w, nil
}

// Name implements controller.Runnable.
func (w *Watch) Name() string { return "watch" }

// Changed reports whether an event has been published, except those of objects that were there at
// the start.
func (w *Watch) Changed() bool { return w.counts.told.Load() > 0 }

// Run watches until ctx ends, or, with Options.Once, until everything that had changed is
// published. The error is that of a kind that cannot exist, or of Options.Tell or the journal.
func (w *Watch) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	told := make(chan error, 1)
	go func() { told <- w.publisher.run(ctx) }()
	var discovering error
	w.tasks.Go(func() {
		if discovering = w.discoverForEver(ctx); discovering != nil {
			cancel(discovering)
		}
	})
	err := <-told // the last to end: it publishes the reports that it has
	cancel(nil)
	w.tasks.Wait()
	if err == nil {
		err = discovering
	}
	return err
}

// discoverForEver asks the server from time to time which kinds it serves.
func (w *Watch) discoverForEver(ctx context.Context) error {
	first, defining, failing, well := true, false, false, time.Now()
	for wait := min(250*time.Millisecond, w.patience); ; {
		served, err := discovery.Ask(ctx, w.host.Client().Discover)
		switch kinds, ok := w.with(served, err); {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was asked to end
		case !ok:
			if w.options.Once && time.Since(well) > w.patience {
				return &unseenError{what: "finding out which kinds there are", err: err}
			}
			if !failing {
				failing = true
				w.log.Warn("cannot find out which kinds there are; trying again until it works", "error", err)
			}
			wait = min(2*wait, discoverEvery)
		default:
			if failing {
				failing = false
				w.log.Warn("the server says again which kinds there are")
			}
			if kinds.Unknown() != nil && first {
				w.log.Warn("some kinds are not known, since their server is away; they are followed when it is back", "error", err)
			}
			if err := w.follow(ctx, kinds, first); err != nil {
				return err
			}
			if first {
				first = false
				close(w.found)
				w.awaitNamespaces(ctx)
			}
			if !defining && w.awaitsKinds() {
				defining = true
				w.followDefinitions(ctx)
			}
			w.awaitLook(ctx)
			well = time.Now()
			continue
		}
		if !pause.For(ctx, wait) {
			return nil
		}
	}
}

// awaitsKinds reports whether kinds may appear that are to be followed.
func (w *Watch) awaitsKinds() bool {
	w.following.Lock()
	defer w.following.Unlock()
	return w.options.All || len(w.waiting) > 0
}

// with returns the kinds after a discovery.
func (w *Watch) with(found []client.Served, err error) (now discovery.Set, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kinds.With(found, err)
}

// awaitLook waits until the next discovery: ten seconds if a wanted kind is not served yet or a
// kind cannot be followed, and otherwise a minute. It is due sooner when kinds are defined: then
// discoverSoon after that, and again after twice the pause each time, since a server takes a while
// to serve what was defined.
func (w *Watch) awaitLook(ctx context.Context) {
	begun := time.Now()
	next := begun.Add(cmp.Or(w.soon, discoverEvery))
	for {
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
		case <-w.defined:
			timer.Stop()
			w.soon = discoverSoon
			if soon := time.Now().Add(discoverSoon); soon.Before(next) {
				next = soon
			}
			continue
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if w.soon > 0 {
			if w.soon *= 2; w.soon > discoverEvery {
				w.soon = 0
			}
			return
		}
		next = next.Add(discoverEvery)
		troubled := slices.ContainsFunc(w.all(), func(f *follower) bool { return f.informer.Trouble() != nil })
		if w.awaitsKinds() || troubled || time.Since(begun) >= discoverSeldom {
			return
		}
	}
}

// follow begins to follow the kinds that are wanted, and ends it for those that the
// server does not serve any more. Kinds of which the discovery found out nothing stay.
func (w *Watch) follow(ctx context.Context, kinds discovery.Set, first bool) error {
	w.following.Lock()
	defer w.following.Unlock()
	whole := kinds.Unknown() == nil
	wanted, err := w.wanted(kinds.Served(), first, whole)
	if err != nil {
		return err
	}
	if w.options.All && len(w.options.Namespaces) > 0 {
		wanted = w.outside.filter(ctx, w, wanted)
	}
	w.sure = w.sure || whole
	w.mu.Lock()
	defer w.mu.Unlock()
	places, awaited := map[place]client.Served{}, map[place]bool{}
	for _, s := range wanted {
		for _, namespace := range w.namespaces(s.Served) {
			p := place{s.Group, s.Plural, namespace, s.object}
			places[p], awaited[p] = s.Served, s.awaited
		}
	}
	maps.DeleteFunc(places, func(p place, _ client.Served) bool { // its kind is followed as a whole
		_, whole := places[place{p.group, p.plural, p.namespace, ""}]
		return p.object != "" && whole
	})
	for p, f := range w.followers {
		if _, still := places[p]; still {
			continue
		}
		w.log.Info("a kind is gone, and followed no longer", "kind", f.kind.String(), "namespace", p.namespace)
		f.stop()
		w.gone[p] = f.legacy
		delete(w.followers, p)
	}
	for _, p := range slices.SortedFunc(maps.Keys(places), place.compare) {
		s := places[p]
		before, appeared := w.gone[p], false
		switch f := w.followers[p]; {
		case f != nil && f.resource == s.Resource:
			continue
		case f != nil:
			w.log.Info("a kind is served otherwise now, and followed anew", "kind", f.kind.String(), "version", s.Version)
			f.stop()
			before = f.legacy
		case !first:
			if appeared = !w.kinds.IsUnknown(s.GroupVersion()); appeared {
				if err := w.cursor.empty("", w.selection(s.Resource, p.namespace, p.object)); err != nil {
					return err
				}
			}
			level := slog.LevelInfo
			if awaited[p] { // the log has a warning that it was not served
				level = slog.LevelWarn
			}
			w.log.Log(ctx, level, "a kind has appeared", "kind", s.Resource.String(), "namespace", p.namespace)
		}
		delete(w.gone, p)
		w.followers[p] = w.newFollower(ctx, s.Resource, p, appeared, before)
	}
	w.kinds = kinds
	return nil
}

func (p place) compare(q place) int {
	return slices.Compare([]string{p.group, p.plural, p.namespace, p.object}, []string{q.group, q.plural, q.namespace, q.object})
}

// namespaces returns where a kind is followed.
func (w *Watch) namespaces(s client.Served) []string {
	if !s.Namespaced || len(w.options.Namespaces) == 0 {
		return []string{""}
	}
	return w.options.Namespaces
}

// wish is a kind that is wanted, or one object of it.
type wish struct {
	client.Served
	object  string
	awaited bool // it was not served until now
}

// wanted returns the kinds of the options that are served. Whole says that the discovery was complete.
// A kind that the first complete discovery does not find is a mistake, or is defined later.
func (w *Watch) wanted(served []client.Served, first, whole bool) ([]wish, error) {
	var wanted []wish
	if w.options.All {
		for _, s := range everyKind(served) {
			wanted = append(wanted, wish{Served: s})
		}
		return wanted, nil
	}
	for _, name := range w.options.Kinds {
		kind, object := splitObject(name)
		s, err := FindKind(served, kind)
		if err == nil {
			_, awaited := w.waiting[name]
			delete(w.waiting, name)
			wanted = append(wanted, wish{s, object, awaited})
			if _, absent := w.cursor.selection(w.absence(name)); !absent {
				continue
			}
			// The last discovery did not find it, in this run or the one before.
			var selections []string
			for _, namespace := range w.namespaces(s) {
				selections = append(selections, w.selection(s.Resource, namespace, object))
			}
			if err := w.cursor.empty(w.absence(name), selections...); err != nil {
				return nil, err
			}
			continue
		}
		if unknown := new(UnknownKindError); errors.As(err, &unknown) && (whole && !w.sure && !unknown.mayAppear() || first && w.options.Once) {
			return nil, err
		}
		noted, waiting := w.waiting[name]
		if !waiting {
			w.log.Warn("a kind is not served; waiting for it", "kind", kind)
		}
		if whole && !noted {
			if err := w.cursor.empty("", w.absence(name)); err != nil {
				return nil, err
			}
		}
		w.waiting[name] = noted || whole
	}
	return wanted, nil
}

// selection is the name in the journal of the objects of a kind in a namespace, or of one object.
func (w *Watch) selection(r object.Resource, namespace, object string) string {
	return fmt.Sprintf("%s/%s/%s/%s", kindOf(r), namespace, w.options.Labels, w.fields(object))
}

// fields is the field selector of the options, and of one object if it is named.
func (w *Watch) fields(object string) string {
	if object == "" {
		return w.options.Fields
	}
	named := "metadata.name=" + fields.EscapeValue(object)
	if w.options.Fields == "" {
		return named
	}
	return named + "," + w.options.Fields
}

// absence is the name in the journal of a kind that is wanted and not served. Its plural is not known
// yet, and so neither is the name of its selection.
func (w *Watch) absence(name string) string {
	return fmt.Sprintf("?%s/%s/%s/%s", name, strings.Join(w.options.Namespaces, ","), w.options.Labels, w.options.Fields)
}

// excluded reports whether the objects of a namespace are left out.
func (w *Watch) excluded(key object.Key) bool {
	return key.Namespace != "" && slices.Contains(w.options.ExcludeNamespaces, key.Namespace)
}

// all returns the followers.
func (w *Watch) all() []*follower {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.followers))
}

func kindOf(r object.Resource) event.Kind {
	return event.Kind{Group: r.Group, Version: r.Version, Kind: r.Kind, Resource: r.Plural, Namespaced: r.Namespaced}
}
