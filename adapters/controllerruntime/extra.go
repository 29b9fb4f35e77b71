// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"time"

	"k8s.io/client-go/rest"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/setpoint-io/setpoint/cache"
)

// Option is an option that cache.Options of controller-runtime does not have.
type Option func(*extra)

// extra are the options of [NewCacheWith].
type extra struct {
	factory []cache.FactoryOption
	detect  time.Duration
	replace bool // the informers of NewInformer
}

// NewCacheWith returns [NewCache] with options:
//
//	manager.Options{NewCache: controllerruntime.NewCacheWith(controllerruntime.DecodedBudget(128 << 20))}
//
// The options have no effect on a cache with the option NewInformer, except [IgnoreNewInformer].
func NewCacheWith(options ...Option) crcache.NewCacheFunc {
	var e extra
	for _, option := range options {
		option(&e)
	}
	return func(config *rest.Config, o crcache.Options) (crcache.Cache, error) {
		return newCache(config, o, &e)
	}
}

// DecodedBudget sets how many bytes of decoded objects a cache keeps for its readers. Without this
// option it is cache.DefaultDecodedBudget. docs/controller-runtime.md says when to raise it.
func DecodedBudget(bytes int64) Option {
	return func(e *extra) { e.factory = append(e.factory, cache.DecodedBudget(bytes)) }
}

// DetectMutation makes a cache check, once in each period, whether an object that readers share was
// changed. The log has the object and the functions that have got it. Objects are shared by event
// handlers, predicates, index functions, and readers with UnsafeDisableDeepCopy. The check is for tests
// and for debugging: it decodes each object again that was read.
func DetectMutation(period time.Duration) Option { return func(e *extra) { e.detect = period } }

// IgnoreNewInformer is for programs that set the option NewInformer of cache.Options, such as those of
// cluster-api, which add metrics to the informers of client-go. Without it, NewCache uses the program's
// informers, which keep decoded objects.
func IgnoreNewInformer() Option { return func(e *extra) { e.replace = true } }
