// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	setpoint "github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Options select the objects of an informer, and how it treats its handlers.
type Options struct {
	Namespace     string // "" is all
	LabelSelector string // "" selects all
	FieldSelector string // "" selects all
	// ResyncPeriod is the period of handlers that name none. 0 is never, for all handlers that
	// are added before the informer runs and name no other.
	ResyncPeriod time.Duration
	// Indexers are the first indexes. [Informer.AddIndexers] adds others.
	Indexers cache.Indexers
	// KeepManagedFields keeps metadata.managedFields. Without it the objects do not have them.
	KeepManagedFields bool
	// Budget is memory for decoded objects, which informers may share. Without it the informer has
	// a budget of its own, of the default size. docs/client-go.md says when to raise it.
	Budget *setpoint.Budget
	// DetectMutation makes the informer check, once in each period, whether an object that readers
	// share was changed. The log has the object and the functions that have got it. It is for
	// tests and for debugging: objects that were read are decoded again. 0 is never.
	DetectMutation time.Duration
}

// Informer implements cache.SharedIndexInformer of client-go on the cache of Setpoint. It is safe
// for concurrent use.
type Informer struct {
	source  source
	options Options
	log     atomic.Pointer[klog.Logger] // of RunWithContext
	store   *indexer
	synced  chan struct{}
	// current is set once the informer reads, and stays when it has stopped.
	current atomic.Pointer[setpoint.SharedInformer[object.Object]]

	mu            sync.Mutex
	started       bool
	stopped       bool
	resync        time.Duration // the shortest period of handlers; 0: there is no resync
	transform     cache.TransformFunc
	onError       cache.WatchErrorHandlerWithContext
	registrations map[*registration]struct{}
}

var _ cache.SharedIndexInformer = (*Informer)(nil)

// source is where an informer reads from, and of which objects.
type source struct {
	config   *rest.Config // of the server; nil if err is set
	err      error        // why there is no configuration
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind // zero: found by the resource
	example  runtime.Object
}

// NewInformer returns an informer of a resource on the server of a clientset, whose objects are of
// the type of example: a Go type of the kind, *unstructured.Unstructured or
// *metav1.PartialObjectMetadata.
//
// A clientset without a connection, as the fakes for unit tests are, cannot be read: the informer
// reports that as an error of its watch, and never syncs.
func NewInformer[D Connection](c Clientset[D], resource schema.GroupVersionResource, example runtime.Object, o Options) *Informer {
	config, err := configOf(c)
	return newInformer(source{config: config, err: err, resource: resource, example: example}, o)
}

// NewInformerForConfig is as [NewInformer], for a server by its configuration.
func NewInformerForConfig(config *rest.Config, resource schema.GroupVersionResource, example runtime.Object, o Options) *Informer {
	return newInformer(source{config: config, resource: resource, example: example}, o)
}

func newInformer(s source, o Options) *Informer {
	i := &Informer{source: s, options: o, resync: o.ResyncPeriod, synced: make(chan struct{}), registrations: map[*registration]struct{}{}}
	i.store = newIndexer(i, o.Indexers)
	return i
}

// Run is RunWithContext until a channel is closed.
func (i *Informer) Run(stop <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext reads from the server until ctx ends, and returns when nothing of the informer
// runs. A second call returns at once.
func (i *Informer) RunWithContext(ctx context.Context) {
	logger := klog.FromContext(ctx)
	i.mu.Lock()
	if i.started {
		i.mu.Unlock()
		logger.Info("Warning: the informer has been started before, and cannot be started again", "resource", i.source.resource)
		return
	}
	i.started = true
	i.log.Store(&logger)
	i.mu.Unlock()
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() { defer close(stopped); i.stop() })
	var tasks sync.WaitGroup
	if factory, informer := i.begin(ctx); factory != nil {
		ran := make(chan struct{})
		tasks.Go(func() { i.awaitSync(informer, ran) })
		_ = factory.Run(ctx) // it is run once, which is all that it refuses
		close(ran)
	}
	<-ctx.Done()
	<-stopped
	tasks.Wait()
}

// stop refuses handlers and indexes from now on.
func (i *Informer) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
	if i.current.Load() != nil {
		return // its handlers end with it
	}
	for r := range i.registrations {
		r.end()
	}
}

// begin makes the informer of the cache, with the handlers and indexes that there are, and its
// factory. The factory is nil if ctx has ended before.
func (i *Informer) begin(ctx context.Context) (*setpoint.Factory, setpoint.SharedInformer[object.Object]) {
	var informer setpoint.SharedInformer[object.Object]
	c, kind, namespaced := i.connect(ctx)
	if c == nil {
		return nil, informer
	}
	factory := i.newFactory(c)
	options := []setpoint.InformerOption{setpoint.OfKind(kind), setpoint.WithoutTypeMeta(),
		setpoint.WithLabels(i.options.LabelSelector), setpoint.WithFields(i.options.FieldSelector)}
	if namespaced {
		options = append(options, setpoint.InNamespace(i.options.Namespace))
	}
	if i.options.KeepManagedFields {
		options = append(options, setpoint.WithManagedFields())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.transform != nil {
		options = append(options, setpoint.Transform(transformOf(i.transform)))
	}
	if i.onError != nil {
		options = append(options, setpoint.OnTrouble(func(err error) { i.failed(ctx, err) }))
	}
	informer = setpoint.InformerOf(factory, i.source.example.(object.Object), options...)
	i.store.begin(informer)
	for r := range i.registrations {
		r.begin(informer)
	}
	i.current.Store(&informer)
	return factory, informer
}

// newFactory returns the factory of the informer of the cache.
func (i *Informer) newFactory(c *client.Client) *setpoint.Factory {
	var options []setpoint.FactoryOption
	if i.options.Budget != nil {
		options = append(options, setpoint.WithBudget(i.options.Budget))
	}
	factory := setpoint.NewFactory(c, slog.New(logr.ToSlogHandler(i.logger())), options...)
	if i.options.DetectMutation > 0 {
		factory.DetectMutation(i.options.DetectMutation)
	}
	return factory
}

// awaitSync closes synced after the first list, or returns when the informer has ended without one. It
// may have listed while it ended.
func (i *Informer) awaitSync(informer setpoint.SharedInformer[object.Object], ran <-chan struct{}) {
	select {
	case <-informer.Synced():
	case <-ran:
	}
	select {
	case <-informer.Synced():
		close(i.synced)
	default:
	}
}

// connect makes the client and finds the kind. It tries again until it succeeds or ctx ends: a
// kind may be defined later.
func (i *Informer) connect(ctx context.Context) (c *client.Client, kind schema.GroupVersionKind, namespaced bool) {
	backoff := wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.5, Steps: 6, Cap: longestPause}
	said := ""
	for {
		c, kind, namespaced, err := i.source.connect(ctx)
		if err == nil {
			return c, kind, namespaced
		}
		if ctx.Err() != nil {
			return nil, kind, false
		}
		i.failed(ctx, err)
		if text := err.Error(); text != said {
			said = text
			i.logger().Error(err, "The informer cannot begin; it tries again until it can", "resource", i.source.resource)
		}
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
			return nil, kind, false
		}
	}
}

// The pauses between tries to find the kind.
const (
	firstPause   = 800 * time.Millisecond
	longestPause = 30 * time.Second
)

func (s *source) connect(ctx context.Context) (*client.Client, schema.GroupVersionKind, bool, error) {
	if s.err != nil {
		return nil, s.kind, false, s.err
	}
	if _, ok := s.example.(object.Object); !ok {
		return nil, s.kind, false, fmt.Errorf("making an informer of %T: the type has no metadata", s.example)
	}
	c, err := client.New(s.config)
	if err != nil {
		return nil, s.kind, false, err
	}
	kind := s.kind
	if kind.Empty() {
		if kind, err = kindOf(ctx, c, s.resource); err != nil {
			return nil, kind, false, err
		}
	}
	resource, err := c.Resolve(ctx, kind)
	return c, kind, resource.Namespaced, err
}

// empty returns an object without content of the type of the example, which must have metadata.
func (s *source) empty() object.Object {
	o := reflect.New(reflect.TypeOf(s.example).Elem()).Interface().(object.Object)
	if decode.ViewOf(s.example) != decode.Typed { // typed objects come without their kind
		o.GetObjectKind().SetGroupVersionKind(s.example.GetObjectKind().GroupVersionKind())
	}
	return o
}

// failed calls the function that was set for errors of lists and watches. The log of the cache has
// them too.
func (i *Informer) failed(ctx context.Context, err error) {
	i.mu.Lock()
	handle := i.onError
	i.mu.Unlock()
	if handle == nil {
		return
	}
	handle(ctx, cache.NewReflectorWithOptions(&cache.ListWatch{}, i.source.example, i.store, cache.ReflectorOptions{Name: i.String()}), err)
}

func (i *Informer) logger() klog.Logger {
	if logger := i.log.Load(); logger != nil {
		return *logger
	}
	return klog.Background()
}

// Status returns the state of the informer and of its handlers, and false before it reads.
func (i *Informer) Status() (setpoint.Status, bool) {
	informer := i.current.Load()
	if informer == nil {
		return setpoint.Status{}, false
	}
	return informer.Handle().Status(), true
}

// String names the informer in logs.
func (i *Informer) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", i.source.resource.GroupResource(), i.options.Namespace))
}

// transformOf turns a transform of client-go into one of the cache.
func transformOf(f cache.TransformFunc) func(object.Object) (object.Object, error) {
	return func(before object.Object) (object.Object, error) {
		after, err := f(before)
		if err != nil {
			return nil, err
		}
		o, ok := after.(object.Object)
		if !ok || fmt.Sprintf("%T", o) != fmt.Sprintf("%T", before) {
			return nil, fmt.Errorf("the transform has made a %T of a %T: the cache keeps objects of one type", after, before)
		}
		return o, nil
	}
}

// HasSynced reports whether the informer has listed its objects.
func (i *Informer) HasSynced() bool { return cache.IsDone(i.HasSyncedChecker()) }

// HasSyncedChecker waits for what HasSynced reports.
func (i *Informer) HasSyncedChecker() cache.DoneChecker {
	return checker{fmt.Sprintf("SharedIndexInformer %T", i.source.example), i.synced}
}

// checker is a channel with a name.
type checker struct {
	name string
	done <-chan struct{}
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }

// LastSyncResourceVersion returns the version up to which the informer has seen its objects, or
// "" before the first list.
func (i *Informer) LastSyncResourceVersion() string {
	if informer := i.current.Load(); informer != nil && i.HasSynced() {
		return string(informer.Snapshot().Version())
	}
	return ""
}

// GetStore returns the objects.
func (i *Informer) GetStore() cache.Store { return i.store }

// GetIndexer returns the objects and their indexes.
func (i *Informer) GetIndexer() cache.Indexer { return i.store }

// AddIndexers adds indexes, at any time until the informer has stopped. An index has the objects
// that are there already.
func (i *Informer) AddIndexers(indexers cache.Indexers) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return errors.New("indexer was not added because it has stopped already")
	}
	return i.store.add(indexers, i.current.Load())
}

// GetController returns a controller that reports the informer's state, and cannot be run.
func (i *Informer) GetController() cache.Controller { return controller{i} }

type controller struct{ *Informer }

func (controller) Run(<-chan struct{})            {}
func (controller) RunWithContext(context.Context) {}

// SetWatchErrorHandler is as [Informer.SetWatchErrorHandlerWithContext].
func (i *Informer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext sets a function that is called with each failure to list or
// watch, before the informer tries again. It must be set before the informer is started. The
// Reflector that it gets has a name and nothing else.
func (i *Informer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	return i.beforeStart(func() { i.onError = handler })
}

// SetTransform sets a function that changes each object before it is stored. It must be set before
// the informer is started. It must keep type, namespace, name, UID and resourceVersion. If it fails
// for an object, the informer keeps the last state of that object for which it succeeded, and goes
// on with all others.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	return i.beforeStart(func() { i.transform = transform })
}

func (i *Informer) beforeStart(set func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return errors.New("informer has already started")
	}
	set()
	return nil
}

// IsStopped reports whether the informer has stopped.
func (i *Informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}
