// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/wire"
)

// protobufFirst asks for protobuf, and for JSON from a server that has none for the kind.
const protobufFirst = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

// metadataAlone asks for lists of PartialObjectMetadata, which have no values of Secrets.
//
// In protobuf the fields of managedFields stay encoded until they are read. They are most of the metadata, and of a
// namespace with 1,000 Pods the page reads those of a few objects.
const metadataAlone = runtime.ContentTypeProtobuf + partialList + "," + runtime.ContentTypeJSON + partialList + "," + runtime.ContentTypeJSON

const partialList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// metadata is the metadata of an object of a kind.
type metadata struct {
	of object.Resource
	metav1.PartialObjectMetadata
}

// object names the object.
func (m *metadata) object() runs.Object {
	return runs.ObjectOf(object.Ref{Group: m.of.Group, Kind: m.of.Kind, UID: m.UID, Key: object.Key{Namespace: m.Namespace, Name: m.Name}})
}

// known returns the object with its metadata as a tree.
func (m *metadata) known() (explain.Known, error) {
	state, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m.PartialObjectMetadata)
	if err != nil {
		return explain.Known{}, fmt.Errorf("%s: %w", m.object(), err)
	}
	return explain.Known{Object: m.object(), State: state}, nil
}

// listMetadata returns the metadata of the first objects of a kind, and whether there are more.
func (g Gatherer) listMetadata(ctx context.Context, r object.Resource, namespace, fieldSelector string, most int) (items []*metadata, more bool, err error) {
	request := g.Client.Request(http.MethodGet).Resource(r).Namespace(namespace).Param("fieldSelector", fieldSelector).Param("limit", fmt.Sprint(most))
	more, err = page(ctx, request.Accept(metadataAlone), r, func(e wire.Encoding, raw []byte) error {
		item := &metadata{of: r}
		items = append(items, item)
		return e.Decode(raw, &item.PartialObjectMetadata)
	})
	return items, more, err
}

// metadataOf returns the metadata of an object without a namespace.
func (g Gatherer) metadataOf(ctx context.Context, r object.Resource, name string) (*metadata, error) {
	answer, err := g.Client.Request(http.MethodGet).Resource(r).Name(name).Accept(runtime.ContentTypeJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + runtime.ContentTypeJSON).Do(ctx)
	if err != nil {
		return nil, err
	}
	m := &metadata{of: r}
	if err := answer.Encoding.Decode(answer.Body, &m.PartialObjectMetadata); err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Kind, name, err)
	}
	return m, nil
}

// trees returns one page of a list of whole objects, and whether there are more.
func trees(ctx context.Context, request *client.Request, r object.Resource) (items []map[string]any, more bool, err error) {
	more, err = page(ctx, request.Accept(runtime.ContentTypeJSON), r, func(e wire.Encoding, raw []byte) error {
		var item unstructured.Unstructured
		err := e.Decode(raw, &item)
		items = append(items, item.Object)
		return err
	})
	return items, more, err
}

// page reads one page of a list, and reports whether there are more. item gets the bytes of each object.
//
// Any version will do. A list of the newest state of a kind that does not change waits for etcd to say that it has not, which
// takes the server up to 100 ms where other kinds change (source: k8s.io/apiserver/pkg/storage/cacher/progress): measured at
// 180 changes a second, 98 ms instead of 1.5. A namespace has some 35 kinds. The server's cache is milliseconds late, and it keeps to
// the limit with any version but 0.
func page(ctx context.Context, request *client.Request, r object.Resource, item func(wire.Encoding, []byte) error) (more bool, err error) {
	answer, err := request.Param("resourceVersion", "1").Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan)).Do(ctx)
	if err != nil {
		return false, err
	}
	list, err := wire.List(bytes.NewReader(answer.Body), answer.Encoding, 0, func(raw []byte) error { return item(answer.Encoding, raw) })
	if err != nil {
		return false, fmt.Errorf("decoding the %s: %w", strings.ToLower(r.Plural), err)
	}
	return list.Continue != "", nil
}
