// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// settings are which objects of each kind the cache has, and how it treats them.
type settings struct {
	kinds   map[schema.GroupVersionKind]map[string]crcache.Config // of ByObject
	spaces  map[string]crcache.Config                             // of other kinds with namespaces
	cluster crcache.Config                                        // of other kinds without
}

// of returns the configurations of a kind by namespace. The empty namespace is all that have no
// configuration of their own.
func (s *settings) of(kind schema.GroupVersionKind, namespaced bool) map[string]crcache.Config {
	if parts, ok := s.kinds[kind]; ok {
		return parts
	}
	if namespaced && len(s.spaces) > 0 {
		return s.spaces
	}
	return map[string]crcache.Config{metav1.NamespaceAll: s.cluster}
}

// settingsOf reads the options. A setting comes from the first of these that has it: the namespace
// in ByObject, ByObject, the namespace in DefaultNamespaces, the defaults of the cache.
// Source: sigs.k8s.io/controller-runtime/pkg/cache, Options.
func settingsOf(o *crcache.Options) (*settings, error) {
	defaults := crcache.Config{
		LabelSelector:         o.DefaultLabelSelector,
		FieldSelector:         o.DefaultFieldSelector,
		Transform:             o.DefaultTransform,
		UnsafeDisableDeepCopy: o.DefaultUnsafeDisableDeepCopy,
		EnableWatchBookmarks:  o.DefaultEnableWatchBookmarks,
		SyncPeriod:            o.SyncPeriod,
	}
	s := &settings{cluster: defaults, spaces: map[string]crcache.Config{}, kinds: map[schema.GroupVersionKind]map[string]crcache.Config{}}
	for namespace, config := range o.DefaultNamespaces {
		s.spaces[namespace] = first(config, defaults)
	}
	leaveOutOthers(s.spaces)
	for sample, by := range o.ByObject {
		kind, err := apiutil.GVKForObject(sample, o.Scheme)
		if err != nil {
			return nil, fmt.Errorf("finding the kind of %T in ByObject: %w", sample, err)
		}
		if _, twice := s.kinds[kind]; twice {
			return nil, fmt.Errorf("ByObject has the kind %s twice", kind)
		}
		namespaced, err := apiutil.IsObjectNamespaced(sample, o.Scheme, o.Mapper)
		if err != nil {
			return nil, fmt.Errorf("finding out if objects of %T in ByObject have a namespace: %w", sample, err)
		}
		if !namespaced && by.Namespaces != nil {
			return nil, fmt.Errorf("objects of %T have no namespace, but its ByObject.Namespaces is set", sample)
		}
		s.kinds[kind] = partsOf(by, namespaced, o.DefaultNamespaces, defaults)
	}
	return s, nil
}

// partsOf returns the configurations of one kind in ByObject.
func partsOf(by crcache.ByObject, namespaced bool, spaces map[string]crcache.Config, defaults crcache.Config) map[string]crcache.Config {
	whole := crcache.Config{
		LabelSelector:         by.Label,
		FieldSelector:         by.Field,
		Transform:             by.Transform,
		UnsafeDisableDeepCopy: by.UnsafeDisableDeepCopy,
		EnableWatchBookmarks:  by.EnableWatchBookmarks,
		SyncPeriod:            by.SyncPeriod,
	}
	chosen := by.Namespaces
	if namespaced && chosen == nil {
		chosen = spaces
	}
	if len(chosen) == 0 {
		return map[string]crcache.Config{metav1.NamespaceAll: first(whole, defaults)}
	}
	parts := maps.Clone(chosen)
	for namespace, config := range parts {
		parts[namespace] = first(config, whole, spaces[namespace], defaults)
	}
	leaveOutOthers(parts)
	return parts
}

// leaveOutOthers has the configuration of all namespaces leave out those that have one of their
// own.
func leaveOutOthers(parts map[string]crcache.Config) {
	all, ok := parts[metav1.NamespaceAll]
	if !ok {
		return
	}
	var selectors []fields.Selector
	for _, namespace := range slices.Sorted(maps.Keys(parts)) {
		if namespace != metav1.NamespaceAll {
			selectors = append(selectors, fields.OneTermNotEqualSelector("metadata.namespace", namespace))
		}
	}
	if all.FieldSelector != nil {
		selectors = append(selectors, all.FieldSelector)
	}
	all.FieldSelector = fields.AndSelectors(selectors...)
	parts[metav1.NamespaceAll] = all
}

// first takes each setting from the first configuration that has it.
func first(configs ...crcache.Config) crcache.Config {
	var c crcache.Config
	for _, next := range configs {
		if c.LabelSelector == nil {
			c.LabelSelector = next.LabelSelector
		}
		if c.FieldSelector == nil {
			c.FieldSelector = next.FieldSelector
		}
		if c.Transform == nil {
			c.Transform = next.Transform
		}
		if c.UnsafeDisableDeepCopy == nil {
			c.UnsafeDisableDeepCopy = next.UnsafeDisableDeepCopy
		}
		if c.EnableWatchBookmarks == nil {
			c.EnableWatchBookmarks = next.EnableWatchBookmarks
		}
		if c.SyncPeriod == nil {
			c.SyncPeriod = next.SyncPeriod
		}
	}
	return c
}

// defaultResync is the resync period of informers without one.
// Source: sigs.k8s.io/controller-runtime/pkg/cache, Options.SyncPeriod.
const defaultResync = 10 * time.Hour

// dropsManagedFields reports whether a transform is cache.TransformStripManagedFields. The cache
// drops managed fields without decoding the object, so it needs no call of the function. Two
// functions can be compared by the place of their code only.
func dropsManagedFields(f toolscache.TransformFunc) bool {
	file, line := placeOf(f)
	known, at := placeOf(crcache.TransformStripManagedFields())
	return file == known && line == at
}

func placeOf(f toolscache.TransformFunc) (file string, line int) {
	entry := reflect.ValueOf(f).Pointer()
	return runtime.FuncForPC(entry).FileLine(entry)
}
