// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package vacprotection

import (
	"slices"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// inClaims is where a claim names a class: the class that it asks for, the class that its volume
// has now, and the class that a driver is changing the volume to.
// Source: k8s.io/api/core/v1/generated.proto.
var inClaims = []wire.Path{
	{Names: "spec.volumeAttributesClassName", Numbers: [4]int32{2, 9}},
	{Names: "status.currentVolumeAttributesClassName", Numbers: [4]int32{3, 8}},
	{Names: "status.modifyVolumeStatus.targetVolumeAttributesClassName", Numbers: [4]int32{3, 9, 1}},
}

// inVolumes is where a volume names a class.
// Source: k8s.io/api/core/v1/generated.proto.
var inVolumes = []wire.Path{
	{Names: "spec.volumeAttributesClassName", Numbers: [4]int32{2, 10}},
}

// named returns a function for an index, which returns the classes that an object names, each once.
// There are none for an item that does not exist.
func named[T object.Object](places []wire.Path) func(cache.Item[T]) ([]string, error) {
	return func(item cache.Item[T]) ([]string, error) {
		if !item.Exists() {
			return nil, nil
		}
		var classes []string
		for _, place := range places {
			class, err := item.Text(place)
			if err != nil {
				return nil, err
			}
			if class != "" && !slices.Contains(classes, class) {
				classes = append(classes, class)
			}
		}
		return classes, nil
	}
}

// keys returns a mapping to the classes that an object names.
func keys[T object.Object](places []wire.Path) func(cache.Item[T], func(object.Key)) {
	classesOf := named[T](places)
	return func(item cache.Item[T], add func(object.Key)) {
		classes, _ := classesOf(item) // the index has logged an object that cannot be read
		for _, class := range classes {
			add(object.Key{Name: class})
		}
	}
}

// stopsToName returns a predicate that chooses the events after which an object does not name a
// class any more. No other event can end the protection of a class.
func stopsToName[T object.Object](places []wire.Path) controller.Predicate[T] {
	classesOf := named[T](places)
	return func(e cache.Event[T]) bool {
		was, err := classesOf(e.Old)
		if err != nil {
			return true
		}
		now, err := classesOf(e.New)
		return err != nil || slices.ContainsFunc(was, func(class string) bool { return !slices.Contains(now, class) })
	}
}
