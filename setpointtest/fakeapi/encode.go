// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/wire"
)

// form is how an object is encoded.
type form struct {
	encoding wire.Encoding
	metadata bool // the metadata alone
}

// The kinds of objects of which the metadata alone is wanted.
const (
	metaAPIVersion   = "meta.k8s.io/v1"
	metadataKind     = "PartialObjectMetadata"
	metadataListKind = metadataKind + "List"
)

// kind returns what an object in this form says it is.
func (f form) kind(r *Resource) (apiVersion, kind string) {
	if f.metadata {
		return metaAPIVersion, metadataKind
	}
	return r.APIVersion(), r.Kind
}

// raw returns an object: as a message without envelope, or as JSON.
func (s *state) raw(r *Resource, f form) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.encoded == nil {
		s.encoded = map[form][]byte{}
	}
	if s.encoded[f] == nil {
		s.encoded[f] = encode(r, s.object, f)
	}
	return s.encoded[f]
}

// item returns an object as an item of a list. Those of built-in kinds do not say there
// what they are.
func (s *state) item(r *Resource, f form) []byte {
	if f.encoding == wire.Protobuf || f.metadata || !r.builtin {
		return s.raw(r, f)
	}
	o := unstructured.Unstructured{Object: make(map[string]any, len(s.object.Object))}
	for name, value := range s.object.Object {
		if name != "kind" && name != "apiVersion" {
			o.Object[name] = value
		}
	}
	return must(json.Marshal(o.Object))
}

func encode(r *Resource, o *unstructured.Unstructured, f form) []byte {
	if !f.metadata && f.encoding == wire.JSON {
		return must(json.Marshal(o.Object))
	}
	var into runtime.Object = &metav1.PartialObjectMetadata{}
	if !f.metadata {
		into = r.newTyped()
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		return unreadable(r, o, f)
	}
	if f.encoding == wire.Protobuf {
		return must(into.(interface{ Marshal() ([]byte, error) }).Marshal())
	}
	into.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(metadataKind))
	into.(*metav1.PartialObjectMetadata).APIVersion = metaAPIVersion
	return must(json.Marshal(into))
}

// unreadable is a message that says which object it is, and nothing more that could be
// read. It is for objects that Put stored although they do not fit the Go type.
func unreadable(r *Resource, o *unstructured.Unstructured, f form) []byte {
	only := &unstructured.Unstructured{Object: map[string]any{"metadata": o.Object["metadata"]}}
	metadata := encode(r, only, form{encoding: f.encoding, metadata: true})
	// 2 is the specification in all messages of objects. A message of this byte ends within a tag.
	return protowire.AppendBytes(protowire.AppendTag(metadata, 2, protowire.BytesType), []byte{0xff})
}

// seal puts a message into the envelope that says what it is. JSON needs none.
func (f form) seal(apiVersion, kind string, raw []byte) []byte {
	if f.encoding == wire.JSON {
		return raw
	}
	return must(wire.Seal(apiVersion, kind, raw))
}

// event returns the frame of a watch event.
func (f form) event(kind, apiVersion, objectKind string, raw []byte) []byte {
	if f.encoding == wire.JSON {
		return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", kind, raw)
	}
	message := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: f.seal(apiVersion, objectKind, raw)}}
	body := must(message.Marshal())
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// status returns a Status as a whole body.
func (f form) statusBody(s *metav1.Status) []byte {
	if f.encoding == wire.JSON {
		return must(json.Marshal(s))
	}
	return f.seal("v1", "Status", must(s.Marshal()))
}

// listing is the answer to a list.
type listing struct {
	meta  metav1.ListMeta
	items []*state
}

// body returns a list.
func (l *listing) body(r *Resource, f form) []byte {
	apiVersion, kind := r.APIVersion(), r.Kind+"List"
	if f.metadata {
		apiVersion, kind = metaAPIVersion, metadataListKind
	}
	if f.encoding == wire.JSON {
		body := fmt.Appendf(nil, "{\"kind\":%q,\"apiVersion\":%q,\"metadata\":%s,\"items\":[", kind, apiVersion, l.metadata(r, f))
		for i, o := range l.items {
			if i > 0 {
				body = append(body, ',')
			}
			body = append(body, o.item(r, f)...)
		}
		return append(body, "]}\n"...)
	}
	// All messages of lists: 1 metadata, 2 items.
	message := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), must(l.meta.Marshal()))
	for _, o := range l.items {
		message = protowire.AppendBytes(protowire.AppendTag(message, 2, protowire.BytesType), o.item(r, f))
	}
	return f.seal(apiVersion, kind, message)
}

// metadata is that of a list in JSON. Those of custom kinds always have the field continue.
func (l *listing) metadata(r *Resource, f form) []byte {
	if r.builtin || f.metadata || l.meta.Continue != "" {
		return must(json.Marshal(l.meta))
	}
	return must(json.Marshal(map[string]string{"continue": "", "resourceVersion": l.meta.ResourceVersion}))
}

// must is for the encoding of what the server read or made itself.
func must(raw []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("fakeapi: encoding: %v", err))
	}
	return raw
}
