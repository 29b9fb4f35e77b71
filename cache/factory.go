// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Factory makes informers and shares them: whoever asks for the same selection of
// a kind gets the same one. It is safe for concurrent use.
type Factory struct {
	client *client.Client
	log    *slog.Logger

	mu        sync.Mutex
	informers map[selection]*informer
	server    pulse
	running   context.Context // nil: Run has not been called
	tasks     sync.WaitGroup
}

// selection is what makes two informers the same.
type selection struct {
	kind      schema.GroupVersionKind
	typ       string // of the objects: one kind may be read into two types
	selection client.Selection
}

// NewFactory returns a factory of informers that read through c. log may be nil.
func NewFactory(c *client.Client, log *slog.Logger) *Factory {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Factory{client: c, log: log, informers: map[selection]*informer{}}
}

// Provider is what has a factory: a manager, or a factory itself.
type Provider interface{ Informers() *Factory }

// Informers makes a Factory a Provider.
func (f *Factory) Informers() *Factory { return f }

// InformerOption chooses which objects an informer holds.
type InformerOption func(*choice)

type choice struct {
	kind      schema.GroupVersionKind
	selection client.Selection
	transform func(object.Object) (object.Object, error)
}

// OfKind names the kind, where the type does not: for unstructured objects and
// for metadata.
func OfKind(kind schema.GroupVersionKind) InformerOption { return func(c *choice) { c.kind = kind } }

// InNamespace leaves out the objects of other namespaces.
func InNamespace(namespace string) InformerOption {
	return func(c *choice) { c.selection.Namespace = namespace }
}

// WithLabels leaves out the objects that a label selector does not match.
func WithLabels(selector string) InformerOption {
	return func(c *choice) { c.selection.Labels = selector }
}

// WithFields leaves out the objects that a field selector does not match.
func WithFields(selector string) InformerOption {
	return func(c *choice) { c.selection.Fields = selector }
}

// Transform changes each object once before it is stored, to leave out what
// nobody needs. An informer with a transform is not shared: two functions cannot
// be compared.
func Transform[T object.Object](f func(T) (T, error)) InformerOption {
	return func(c *choice) {
		c.transform = func(o object.Object) (object.Object, error) { return f(o.(T)) }
	}
}

// Informer returns the informer of the kind whose objects are T. It panics if the
// kind of T cannot be told, which is a mistake in the program: a type that is in
// no scheme, or no OfKind where the type alone does not say.
func Informer[T object.Object](p Provider, options ...InformerOption) SharedInformer[T] {
	f := p.Informers()
	var c choice
	for _, option := range options {
		option(&c)
	}
	sample := object.New[T]()
	if _, metadata := any(sample).(*metav1.PartialObjectMetadata); metadata {
		c.selection.MetadataOnly = true
	}
	if c.kind.Empty() {
		kind, err := f.client.KindOf(sample)
		if err != nil {
			panic(fmt.Sprintf("cache.Informer: %v", err))
		}
		c.kind = kind
	}
	c.selection.JSONOnly = !wire.SpeaksProtobuf(sample)
	return SharedInformer[T]{f.informer(c, fmt.Sprintf("%T", sample), func() object.Object { return object.New[T]() })}
}

func (f *Factory) informer(c choice, typ string, empty func() object.Object) *informer {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := selection{kind: c.kind, typ: typ, selection: c.selection}
	if i := f.informers[key]; i != nil && c.transform == nil {
		return i
	}
	if c.transform != nil {
		key.typ = fmt.Sprintf("%s with transform %d", typ, len(f.informers))
	}
	source := &serverSource{client: f.client, kind: c.kind, selection: c.selection, new: empty, transform: c.transform}
	i := newInformer(client.Plural(c.kind), source, f.log)
	i.reflect.server = &f.server
	i.kind = object.Ref{Group: c.kind.Group, Kind: c.kind.Kind}
	i.partial = c.selection.Namespace != "" || c.selection.Labels != "" || c.selection.Fields != ""
	f.informers[key] = i
	if f.running != nil {
		f.start(i)
	}
	return i
}

// start is called with mu held.
func (f *Factory) start(i *informer) {
	ctx := f.running
	f.tasks.Go(func() { _ = i.run(ctx) })
}

// Run starts the informers that there are, and those that are asked for later. It
// returns when ctx has ended and nothing of them runs.
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
	f.mu.Unlock()
	<-ctx.Done()
	f.tasks.Wait()
	return nil
}

// Status returns what can be seen of all informers, in the order of their kinds.
func (f *Factory) Status() []Status {
	f.mu.Lock()
	informers := make([]*informer, 0, len(f.informers))
	for _, i := range f.informers {
		informers = append(informers, i)
	}
	f.mu.Unlock()
	all := make([]Status, 0, len(informers))
	for _, i := range informers {
		all = append(all, Handle{i}.Status())
	}
	slices.SortFunc(all, func(a, b Status) int {
		if a.Kind < b.Kind {
			return -1
		} else if a.Kind > b.Kind {
			return 1
		}
		return 0
	})
	return all
}
