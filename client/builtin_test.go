// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// The table of built-in kinds is ours, so that no program is linked with every type there
// is; what it says is what client-go's scheme says of each type that is an object.
func TestTypesOfKubernetesAreKnownWithoutAScheme(t *testing.T) {
	_, c := start(t)
	compared := 0
	for kind, typ := range scheme.Scheme.AllKnownTypes() {
		sample := reflect.New(typ).Interface().(runtime.Object)
		if _, isObject := sample.(object.Object); !isObject || !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") || unserved[kind] {
			continue
		}
		if got, err := c.KindOf(sample); err != nil || got != kind {
			t.Errorf("%s: KindOf says %v, %v", kind, got, err)
		}
		if !client.Builtin(kind.GroupKind()) {
			t.Errorf("%s is not said to be built in", kind)
		}
		compared++
	}
	if compared < 100 {
		t.Errorf("only %d types were compared", compared)
	}
	if client.Builtin(schema.GroupKind{Group: "example.com", Kind: "Pod"}) || client.Builtin(schema.GroupKind{Kind: "Widget"}) {
		t.Error("kinds of somebody else are said to be built in")
	}
}

// unserved are types that look like objects and are none of a server's.
var unserved = map[schema.GroupVersionKind]bool{
	{Version: "v1", Kind: "PodStatusResult"}:                 true,
	{Version: "v1", Kind: "RangeAllocation"}:                 true,
	{Group: "apps", Version: "v1beta1", Kind: "Scale"}:       true,
	{Group: "apps", Version: "v1beta2", Kind: "Scale"}:       true,
	{Group: "extensions", Version: "v1beta1", Kind: "Scale"}: true,
}
