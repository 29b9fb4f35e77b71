// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"

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
