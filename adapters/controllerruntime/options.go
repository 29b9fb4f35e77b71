// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
)

// NewCache makes a cache, as cache.New of controller-runtime does. It is a cache.NewCacheFunc, for
// the field NewCache of manager.Options and cluster.Options.
//
// With the option NewInformer the informers are the program's own, and the cache around them is
// that of controller-runtime. The log says so, and [IgnoreNewInformer] replaces them.
func NewCache(config *rest.Config, o crcache.Options) (crcache.Cache, error) {
	return newCache(config, o, &extra{})
}

func newCache(config *rest.Config, o crcache.Options, e *extra) (crcache.Cache, error) {
	if config == nil {
		return nil, errors.New("making a cache: no configuration given")
	}
	if e.replace {
		o.NewInformer = nil
	}
	if o.NewInformer != nil {
		crlog.Log.WithName("cache").Info("NewCache has no effect, because the program makes its own informers by cache.Options.NewInformer; " +
			"NewCacheWith(IgnoreNewInformer()) replaces them")
		return crcache.New(config, o)
	}
	o, err := withDefaults(config, o)
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	settings, err := settingsOf(&o)
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	return newInformerCache(config, o, settings, e)
}

// withDefaults sets what the cache cannot do without.
func withDefaults(config *rest.Config, o crcache.Options) (crcache.Options, error) {
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	if o.HTTPClient == nil {
		made, err := rest.HTTPClientFor(config)
		if err != nil {
			return o, fmt.Errorf("making an HTTP client: %w", err)
		}
		o.HTTPClient = made
	}
	if o.Mapper == nil {
		mapper, err := restMapper(config, o.HTTPClient)
		if err != nil {
			return o, fmt.Errorf("making a REST mapper: %w", err)
		}
		o.Mapper = mapper
	}
	return o, nil
}

func restMapper(config *rest.Config, c *http.Client) (meta.RESTMapper, error) {
	return apiutil.NewDynamicRESTMapper(config, c)
}
