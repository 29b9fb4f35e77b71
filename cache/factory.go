// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Factory makes informers and shares them: all users of the same selection of a kind get the
// same informer. It is safe for concurrent use.
type Factory struct {
	client *client.Client
	log    *slog.Logger
	budget *Budget
	room   *room

	mu        sync.Mutex
	informers map[selection]*informer
	made      int // informers, released ones included
	detect    time.Duration
	server    pulse
	running   context.Context // nil: Run has not been called
	stopping  bool
	tasks     sync.WaitGroup
}

// NewFactory returns a factory of informers that read through c. A nil log is slog.Default.
func NewFactory(c *client.Client, log *slog.Logger, options ...FactoryOption) *Factory {
	f := &Factory{client: c, log: cmp.Or(log, slog.Default()), informers: map[selection]*informer{}, room: newRoom(changingMost)}
	for _, option := range options {
		option(f)
	}
	if f.budget == nil {
		f.budget = NewBudget(DefaultDecodedBudget)
	}
	return f
}

// FactoryOption is an option of [NewFactory].
type FactoryOption func(*Factory)

// DecodedBudget sets how many bytes of decoded objects the factory keeps for its readers:
// see [Budget]. With 0 or less it keeps those alone that were decoded last, 32 of each informer for
// ten seconds. docs/cache.md says how to choose.
func DecodedBudget(bytes int64) FactoryOption { return WithBudget(NewBudget(bytes)) }

// WithBudget makes the factory share a budget of decoded objects with others.
func WithBudget(b *Budget) FactoryOption { return func(f *Factory) { f.budget = b } }

// Budget returns the factory's budget of decoded objects.
func (f *Factory) Budget() *Budget { return f.budget }

// Provider is what [Informer] gets informers from: a manager, the host of a controller, or a
// factory.
type Provider interface {
	// InformerFactory returns the factory of informers, whose client reads.
	InformerFactory() *Factory
	// Client returns the client that writes.
	Client() *client.Client
}

// InformerFactory returns the factory itself, which makes it a Provider.
func (f *Factory) InformerFactory() *Factory { return f }

// Client returns the client that the factory's informers read with.
func (f *Factory) Client() *client.Client { return f.client }

// Informer returns the informer of the kind whose objects are T, and takes a reference to it.
// Its writes use the provider's client. Informer panics if the kind of T is not known, which is
// a mistake in the program: the type is in no scheme, or OfKind is missing for a type of
// several kinds.
//
// T may be *metav1.PartialObjectMetadata, for metadata alone. An informer of the whole objects
// of the same selection serves for that too.
func Informer[T object.Object](p Provider, options ...InformerOption) SharedInformer[T] {
	c := choose(p, object.New[T](), options)
	server := client.For[T](p.Client())
	if c.named {
		server = client.ForKind[T](p.Client(), c.kind)
	}
	i := p.InformerFactory().informer(c, reflect.TypeFor[T](), func() object.Object { return object.New[T]() })
	return SharedInformer[T]{i, &server}
}

// choose returns the choice of a user of the informer whose objects are as sample.
func choose(p Provider, sample object.Object, options []InformerOption) choice {
	var c choice
	for _, option := range options {
		option(&c)
	}
	if _, metadata := sample.(*metav1.PartialObjectMetadata); metadata {
		c.selection.MetadataOnly = true
	}
	if c.named = !c.kind.Empty(); !c.named {
		kind, err := p.InformerFactory().client.KindOf(sample)
		if err != nil {
			panic(fmt.Sprintf("cache.Informer: %v", err))
		}
		c.kind = kind
	}
	if _, untyped := sample.(*unstructured.Unstructured); !untyped {
		c.messages = nil
	}
	c.selection.JSONOnly = !wire.SpeaksProtobuf(sample) && c.messages == nil
	return c
}

// informer returns the informer of a choice, with one more reference.
func (f *Factory) informer(c choice, typ reflect.Type, empty func() object.Object) *informer {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := selection{kind: c.kind, typ: typ, selection: c.selection, managed: c.managed, bare: c.bare}
	key.transformed = c.transform != nil
	if c.alone() {
		key.alone = f.made + 1
	} else if i := f.shared(key, c.exact); i != nil {
		i.references++
		i.gather.Store(min(i.gather.Load(), int64(c.gather)))
		return i
	}
	f.made++
	i := f.build(key, c, empty)
	i.references = 1
	i.key = key
	i.release = func() { f.release(i) }
	if c.predecessor == nil {
		f.logOverlap(key, i)
	}
	f.informers[key] = i
	switch {
	case f.stopping:
		i.neverRun()
	case f.running != nil:
		f.start(i)
	}
	if c.predecessor != nil {
		f.succeed(c.predecessor, i)
	}
	return i
}

// build makes an informer that reads from the server.
func (f *Factory) build(key selection, c choice, empty func() object.Object) *informer {
	content := &content{gvk: c.kind, typ: key.typ, new: empty, managed: c.managed, bare: c.bare, messages: c.messages, budget: f.budget, room: f.room}
	if f.detect > 0 {
		content.handouts = newHandouts(client.Plural(c.kind), f.log)
	}
	source := &serverSource{client: f.client, kind: c.kind, resource: c.resource, selection: c.selection, content: content, transform: c.transform}
	source.selection.WithoutManagedFields = !c.managed
	i := newInformer(client.Plural(c.kind), source, content, f.log)
	if c.transform != nil {
		i.again = source.read
	}
	i.reflect.server = &f.server
	i.reflect.pageSize = c.pageSize
	i.reflect.noBookmarks = c.noBookmarks
	i.gather.Store(int64(c.gather))
	i.reflect.gather = func() time.Duration { return time.Duration(i.gather.Load()) }
	i.onTrouble = c.onTrouble
	i.kind = object.Ref{Group: c.kind.Group, Kind: c.kind.Kind}
	i.chosen = chosenBy(c.selection)
	i.client = f.client
	i.selects = key.String()
	return i
}

// start is called with mu held.
func (f *Factory) start(i *informer) {
	ctx, cancel := context.WithCancel(f.running)
	i.stop = cancel
	f.tasks.Go(func() {
		defer cancel()
		_ = i.run(ctx)
	})
}

// release drops one reference.
func (f *Factory) release(i *informer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i = i.now()
	if i.references--; i.references != 0 {
		return
	}
	delete(f.informers, i.key)
	i.end()
}

// Run starts the informers that exist, and those that Informer makes later. It returns when ctx
// has ended and nothing of them runs any more.
func (f *Factory) Run(ctx context.Context) error {
	f.mu.Lock()
	if f.running != nil {
		f.mu.Unlock()
		return errors.New("running informers: the factory has been run before")
	}
	f.running = ctx
	for _, i := range f.informers {
		f.start(i)
	}
	detect := f.detect
	f.mu.Unlock()
	if detect > 0 {
		f.tasks.Go(func() { f.watchHandouts(ctx, detect) })
	}
	<-ctx.Done()
	// No task may begin while the others are waited for.
	f.mu.Lock()
	f.stopping = true
	f.mu.Unlock()
	f.tasks.Wait()
	return nil
}
