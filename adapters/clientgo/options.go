// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	setpoint "github.com/setpoint-io/setpoint/cache"
)

// SharedInformerOption is an option of a factory. The options have the names and the meaning of
// those in k8s.io/client-go/informers.
type SharedInformerOption func(*settings)

type settings struct {
	namespace   string
	tweak       internalinterfaces.TweakListOptionsFunc
	transform   cache.TransformFunc
	resync      time.Duration
	resyncOf    map[metav1.Object]time.Duration
	name        *cache.InformerName
	keepManaged bool
	budget      *setpoint.Budget
	detect      time.Duration
}

// WithNamespace leaves out the objects of other namespaces.
func WithNamespace(namespace string) SharedInformerOption {
	return func(s *settings) { s.namespace = namespace }
}

// WithTweakListOptions sets a function that changes the options of lists and watches. Its label
// and field selectors are used; the cache sets all other options itself.
func WithTweakListOptions(tweak internalinterfaces.TweakListOptionsFunc) SharedInformerOption {
	return func(s *settings) { s.tweak = tweak }
}

// WithTransform sets a transform of all informers: see [Informer.SetTransform].
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(s *settings) { s.transform = transform }
}

// WithCustomResyncConfig sets the resync periods of types.
func WithCustomResyncConfig(periods map[metav1.Object]time.Duration) SharedInformerOption {
	return func(s *settings) { s.resyncOf = periods }
}

// WithInformerName sets the name that the factory returns. The metrics of client-go do not have the
// informers of this package; [Informer.Status] has their state.
func WithInformerName(name *cache.InformerName) SharedInformerOption {
	return func(s *settings) { s.name = name }
}

// WithManagedFields keeps metadata.managedFields, which are half of the size of many objects.
func WithManagedFields() SharedInformerOption {
	return func(s *settings) { s.keepManaged = true }
}

// WithDecodedBudget sets how many bytes of decoded objects the informers of the factory keep together
// for their readers. Without this option it is cache.DefaultDecodedBudget of Setpoint.
func WithDecodedBudget(bytes int64) SharedInformerOption {
	return func(s *settings) { s.budget = setpoint.NewBudget(bytes) }
}

// WithMutationDetector makes the informers look for changes of shared objects:
// see [Options.DetectMutation].
func WithMutationDetector(period time.Duration) SharedInformerOption {
	return func(s *settings) { s.detect = period }
}

// newSettings returns the settings of a factory.
func newSettings(resync time.Duration, options []SharedInformerOption) settings {
	s := settings{resync: resync, budget: setpoint.NewBudget(setpoint.DefaultDecodedBudget)}
	for _, option := range options {
		option(&s)
	}
	return s
}

// resyncFor returns the resync period of a type.
func (s *settings) resyncFor(example runtime.Object) time.Duration {
	for o, period := range s.resyncOf {
		if reflect.TypeOf(o) == reflect.TypeOf(example) {
			return period
		}
	}
	return s.resync
}

// transformed sets the transform of the factory.
func (s *settings) transformed(informer cache.SharedIndexInformer) {
	if s.transform == nil {
		return
	}
	if err := informer.SetTransform(s.transform); err != nil {
		klog.Background().Error(err, "The transform of the factory cannot be set")
	}
}

// optionsOf returns the options of an informer in a factory, with the index that listers need.
func (s *settings) optionsOf(resync time.Duration) Options {
	var list metav1.ListOptions
	if s.tweak != nil {
		s.tweak(&list)
	}
	return Options{
		Namespace: s.namespace, LabelSelector: list.LabelSelector, FieldSelector: list.FieldSelector, ResyncPeriod: resync,
		Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, KeepManagedFields: s.keepManaged,
		Budget: s.budget, DetectMutation: s.detect,
	}
}

// ofClientGo returns the options that client-go has.
func (s *settings) ofClientGo() []informers.SharedInformerOption {
	options := []informers.SharedInformerOption{
		informers.WithNamespace(s.namespace), informers.WithTweakListOptions(s.tweak),
		informers.WithTransform(s.transform), informers.WithCustomResyncConfig(s.resyncOf),
	}
	if s.name != nil {
		options = append(options, informers.WithInformerName(s.name))
	}
	return options
}
