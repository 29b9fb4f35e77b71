// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// store is the informers of a kind, one for each configured namespace, which several views may
// read from.
type store struct {
	reader decode.Reader
	parts  map[string]*part
	only   *part // of all namespaces, if there is no other
}

// part is the informer of one configured namespace, or of all that have no configuration.
type part struct {
	informer cache.SharedInformer[object.Object]
	shared   bool          // readers get objects that they share
	resync   time.Duration // of handlers that have no period of their own
}

// newStore makes the informers whose objects have the type of a view. They succeed those of another
// store, if one is given: that store has its objects from them, once they have listed the kind.
func (k *kind) newStore(form decode.View, before *store) (*store, error) {
	sample, err := k.sample(form)
	if err != nil {
		return nil, err
	}
	s := &store{parts: map[string]*part{}, reader: decode.Reader{
		Kind: k.gvk, Stored: form, Typed: func() object.Object { return k.empty() },
	}}
	for namespace, config := range k.parts {
		var options []cache.InformerOption
		if before != nil {
			options = append(options, cache.Succeeding(before.parts[namespace].informer.Handle()))
		}
		s.parts[namespace] = k.newPart(sample, namespace, config, options...)
	}
	if len(s.parts) == 1 {
		s.only = s.parts[metav1.NamespaceAll]
	}
	return s, nil
}

// empty returns an empty object of the kind's Go type, which the scheme has.
func (k *kind) empty() object.Object {
	o, err := k.sample(decode.Typed)
	if err != nil {
		panic(fmt.Sprintf("the scheme had the kind %s, and has it no more: %v", k.gvk, err))
	}
	return o
}

func (k *kind) newPart(sample object.Object, namespace string, config crcache.Config, options ...cache.InformerOption) *part {
	options = append(options, cache.OfResource(k.resource), cache.WithoutTypeMeta())
	if k.resource.Namespaced {
		options = append(options, cache.InNamespace(reach(namespace, config)))
	}
	if config.LabelSelector != nil {
		options = append(options, cache.WithLabels(config.LabelSelector.String()))
	}
	if config.FieldSelector != nil {
		options = append(options, cache.WithFields(config.FieldSelector.String()))
	}
	switch {
	case config.Transform == nil:
		options = append(options, cache.WithManagedFields())
	case !dropsManagedFields(config.Transform):
		options = append(options, cache.WithManagedFields(), cache.Transform(k.transform(sample, config.Transform)))
	}
	if config.EnableWatchBookmarks != nil && !*config.EnableWatchBookmarks {
		options = append(options, cache.WithoutBookmarks())
	}
	if k.cache.options.DefaultWatchErrorHandler != nil {
		options = append(options, cache.OnTrouble(k.failed(sample)))
	}
	p := &part{informer: cache.InformerOf(k.cache.factory, sample, options...), resync: defaultResync}
	if config.SyncPeriod != nil {
		p.resync = *config.SyncPeriod
	}
	// The periods of informers differ a little, so that their handlers do not all work at once.
	p.resync = time.Duration(float64(p.resync) * (0.9 + rand.Float64()/5))
	p.shared = config.UnsafeDisableDeepCopy != nil && *config.UnsafeDisableDeepCopy
	return p
}

// reach returns the namespace that an informer lists: its own, or the only one that its field
// selector leaves. A program may have the right to list one namespace alone.
func reach(namespace string, config crcache.Config) string {
	if namespace != "" || config.FieldSelector == nil {
		return namespace
	}
	only, _ := config.FieldSelector.RequiresExactMatch("metadata.namespace")
	return only
}

// transform makes a transform of the cache of one of client-go.
func (k *kind) transform(sample object.Object, f toolscache.TransformFunc) func(object.Object) (object.Object, error) {
	want := reflect.TypeOf(sample)
	return func(o object.Object) (object.Object, error) {
		if m, ok := o.(*metav1.PartialObjectMetadata); ok {
			m.SetGroupVersionKind(k.gvk)
		}
		changed, err := f(o)
		if err != nil {
			return nil, err
		}
		if got := reflect.TypeOf(changed); got != want {
			return nil, fmt.Errorf("the transform of %s returned a %v, want a %v", k.gvk, got, want)
		}
		return changed.(object.Object), nil
	}
}

// failed calls the program's handler of watch errors. The handler gets a reflector of client-go
// for its name and type alone: it does not run.
func (k *kind) failed(sample object.Object) func(error) {
	c := k.cache
	reflector := toolscache.NewReflectorWithOptions(nil, sample, nil, toolscache.ReflectorOptions{Name: "setpoint", TypeDescription: k.gvk.String()})
	return func(err error) {
		c.mu.Lock()
		ctx := c.running
		c.mu.Unlock()
		if ctx == nil {
			ctx = context.Background()
		}
		c.options.DefaultWatchErrorHandler(logr.NewContext(ctx, c.log), reflector, err)
	}
}

// release stops the informers.
func (s *store) release() {
	for _, p := range s.parts {
		p.informer.Release()
	}
}
