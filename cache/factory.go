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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
	made      int // informers, those that are gone included
	detect    time.Duration
	server    pulse
	running   context.Context // nil: Run has not been called
	stopping  bool
	tasks     sync.WaitGroup
}

// selection is what makes two informers the same.
type selection struct {
	kind      schema.GroupVersionKind
	typ       reflect.Type // of the objects: one kind may be read into two types
	selection client.Selection
	managed   bool
	transform int // the number of an informer that has one of its own; 0: none
}

// NewFactory returns a factory of informers that read through c. A nil log is slog.Default.
func NewFactory(c *client.Client, log *slog.Logger) *Factory {
	return &Factory{client: c, log: cmp.Or(log, slog.Default()), informers: map[selection]*informer{}}
}

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

// InformerOption chooses which objects an informer holds, and how. Options are given when
// it is asked for and never after: client-go's errors for a transform or an error handler
// that is set on a running informer have no counterpart.
type InformerOption func(*choice)

type choice struct {
	kind      schema.GroupVersionKind
	selection client.Selection
	managed   bool
	pageSize  int64
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

// WithManagedFields keeps which manager wrote which field of an object, and when: half
// the size of many objects. Other informers leave them out, and ask the server not to send
// them, which servers from Kubernetes 1.38 on can do.
func WithManagedFields() InformerOption { return func(c *choice) { c.managed = true } }

// PageSize has lists read in pages of so many objects. Servers of Kubernetes 1.31 and
// later answer a list from memory and whole, and page through etcd if asked to; with a
// server that is older or has little memory, pages are gentler.
func PageSize(n int64) InformerOption { return func(c *choice) { c.pageSize = n } }

// Transform changes each object once before it is stored, to leave out what
// nobody needs. It costs a decode and an encode for each. It is called for each object
// that arrives, the last state of a deleted one included, and not for what the cache
// tells by itself: a resync, or a deletion that shows by an object's absence. f is called
// once at a time, and must leave namespace, name, UID and resourceVersion as they are.
//
// Where f fails for an object, by an error or a panic, the cache keeps the last state of the
// object that f did not fail for, or has none of it, and goes on with all others. The log,
// [SharedInformer.Trouble] and [Status] name the object and the error. f is called for that state
// again every half minute until it succeeds or the object changes; the bytes are kept for it.
//
// An informer with a transform is not shared: two functions cannot be compared.
func Transform[T object.Object](f func(T) (T, error)) InformerOption {
	return func(c *choice) {
		c.transform = func(o object.Object) (object.Object, error) { return f(o.(T)) }
	}
}

// Informer returns the informer of the kind whose objects are T, and takes a reference
// to it. Its writes are those of the provider's client. It panics if the kind of T cannot be told, which is a mistake in the program:
// a type that is in no scheme, or no OfKind where the type alone does not say.
//
// T may be *metav1.PartialObjectMetadata, for metadata alone. Where the same selection
// is held whole already, that informer serves: it has the metadata too.
func Informer[T object.Object](p Provider, options ...InformerOption) SharedInformer[T] {
	f := p.InformerFactory()
	var c choice
	for _, option := range options {
		option(&c)
	}
	sample := object.New[T]()
	server := client.For[T](p.Client())
	if !c.kind.Empty() {
		server = client.ForKind[T](p.Client(), c.kind)
	}
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
	return SharedInformer[T]{f.informer(c, reflect.TypeFor[T](), func() object.Object { return object.New[T]() }), &server}
}

func (f *Factory) informer(c choice, typ reflect.Type, empty func() object.Object) *informer {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := selection{kind: c.kind, typ: typ, selection: c.selection, managed: c.managed}
	if c.transform == nil {
		if i := f.shared(key); i != nil {
			i.references++
			return i
		}
	} else {
		key.transform = f.made + 1
	}
	f.made++
	content := &content{gvk: c.kind, typ: typ, new: empty, managed: c.managed}
	if f.detect > 0 {
		content.handouts = newHandouts(client.Plural(c.kind), f.log)
	}
	source := &serverSource{client: f.client, kind: c.kind, selection: c.selection, content: content, transform: c.transform}
	source.selection.WithoutManagedFields = !c.managed
	i := newInformer(client.Plural(c.kind), source, content, f.log)
	if c.transform != nil {
		i.again = source.read
	}
	i.reflect.server = &f.server
	i.reflect.pageSize = c.pageSize
	i.kind = object.Ref{Group: c.kind.Group, Kind: c.kind.Kind}
	i.chosen = chosenBy(c.selection)
	i.client = f.client
	i.selects = key.String()
	i.references = 1
	i.release = func() { f.release(key, i) }
	f.sayOverlap(key, i)
	f.informers[key] = i
	switch {
	case f.stopping:
		i.neverRun()
	case f.running != nil:
		f.start(i)
	}
	return i
}

// shared returns the informer that serves a selection. Metadata is served by one that
// holds the whole objects too.
func (f *Factory) shared(key selection) *informer {
	if i := f.informers[key]; i != nil || !key.selection.MetadataOnly {
		return i
	}
	for other, i := range f.informers {
		other.selection.MetadataOnly, other.selection.JSONOnly, other.typ = true, key.selection.JSONOnly, key.typ
		if other == key {
			return i
		}
	}
	return nil
}

// sayOverlap logs where two informers hold the same objects and cannot be shared, which takes
// the memory twice. It is for those who look for memory: several controllers of one process
// may well need it.
func (f *Factory) sayOverlap(key selection, i *informer) {
	for other, o := range f.informers {
		if other.kind == key.kind && (!o.chosen.partial() || !i.chosen.partial()) {
			f.log.Debug("two informers cache the same kind with different selectors",
				"kind", i.name, "one", o.says(), "other", i.says())
		}
	}
}

// says is what the informer holds, in words.
func (i *informer) says() string {
	text := cmp.Or(i.selects, "all, whole")
	if typ := i.content.typ.Elem(); typ.Name() != i.kind.Kind && typ != reflect.TypeFor[metav1.PartialObjectMetadata]() {
		text += ", as " + typ.String()
	}
	return text
}

// String says what is selected; nothing if it is all.
func (s selection) String() string {
	var parts []string
	add := func(is bool, text string) {
		if is {
			parts = append(parts, text)
		}
	}
	add(s.selection.Namespace != "", "in "+s.selection.Namespace)
	add(s.selection.Labels != "", "with labels "+s.selection.Labels)
	add(s.selection.Fields != "", "with fields "+s.selection.Fields)
	add(s.selection.MetadataOnly, "metadata")
	add(s.managed, "managed fields")
	add(s.transform > 0, "transformed")
	return strings.Join(parts, ", ")
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

// release gives back one reference.
func (f *Factory) release(key selection, i *informer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i.references--; i.references != 0 {
		return
	}
	delete(f.informers, key)
	if i.stop != nil {
		i.stop()
		return
	}
	i.neverRun()
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
	detect := f.detect
	f.mu.Unlock()
	if detect > 0 {
		f.tasks.Go(func() { f.watchHandouts(ctx, detect) })
	}
	<-ctx.Done()
	// No task is begun any more while the others are waited for.
	f.mu.Lock()
	f.stopping = true
	f.mu.Unlock()
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
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Selects, b.Selects))
	})
	var newest uint64
	for i := range all {
		newest = max(newest, number(all[i].Version))
	}
	for i := range all {
		if all[i].Synced {
			all[i].Behind = newest - number(all[i].Version)
		}
	}
	return all
}

// number is a version that fits into 64 bits; 0 stands for others.
func number(v object.Version) uint64 {
	n, _ := strconv.ParseUint(string(v), 10, 64)
	return n
}
