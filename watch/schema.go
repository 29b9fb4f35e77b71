// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/observe"
	"github.com/setpoint-io/setpoint/wire"
)

// definitions is where the schemas of custom kinds are.
var definitions = object.Resource{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition"}

// schemaPatience is how long a follower waits for a schema. Without one, lists are matched by
// the shape of their elements, which is right nearly always.
const schemaPatience = 5 * time.Second

// observer returns what makes events of the states of a kind.
func (w *Watch) observer(ctx context.Context, f *follower) *observe.Observer {
	schema, known := diff.Builtin(f.kind)
	if !known {
		schema = w.definedSchema(ctx, f)
	}
	selected := w.options.Labels != "" || w.options.Fields != ""
	return observe.New(observe.Options{Kind: f.kind, Schema: schema, Hide: w.options.Hide, Selected: selected, Key: w.tags})
}

// definedSchema returns the schema of the definition of a custom kind, if this account may read it.
func (w *Watch) definedSchema(ctx context.Context, f *follower) diff.Schema {
	ctx, cancel := context.WithTimeout(ctx, schemaPatience)
	defer cancel()
	name := object.Key{Name: f.resource.Plural + "." + f.resource.Group}
	definition, err := client.ForResource[*unstructured.Unstructured](w.host.Client(), definitions).Get(ctx, name)
	if err == nil {
		if schema, ok := diff.FromCRD(definition.Object, f.resource.Version); ok {
			return schema
		}
	}
	w.log.Debug("the schema of a kind is not known; lists are matched by what they look like", "kind", f.kind.String(), "error", err)
	return diff.Generic()
}

// messagesOf returns how the messages of a built-in kind are JSON trees, nil for a kind that is read as JSON: the program does not
// have its Go type.
func messagesOf(r object.Resource) *wire.Schema {
	typ, ok := scheme.Scheme.AllKnownTypes()[r.GroupVersionKind()]
	if !ok {
		return nil
	}
	schema, ok := wire.SchemaOf(typ)
	if !ok {
		return nil
	}
	return schema
}
