// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/wire"
)

// encodingFor chooses what a client gets.
func (k *Kind) encodingFor(r *http.Request) wire.Encoding {
	if k.Resource.Group == "" && strings.Contains(r.Header.Get("Accept"), wire.Protobuf.MediaType()) {
		return wire.Protobuf
	}
	return wire.JSON
}

// event returns the frame of a watch event.
func event(e wire.Encoding, kind, apiVersion, objectKind string, raw []byte) []byte {
	if e == wire.JSON {
		return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", kind, raw)
	}
	message := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: must(wire.Seal(apiVersion, objectKind, raw))}}
	body := must(message.Marshal())
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// frame is the event of a change.
func (s *Server) frame(e wire.Encoding, kind string, o *stored) []byte {
	if kind == wire.Added { // one object may be sent as added and as modified
		return event(e, kind, s.kind.Resource.APIVersion(), s.kind.Resource.Kind, o.raw(e))
	}
	if o.events[e] == nil {
		o.events[e] = event(e, kind, s.kind.Resource.APIVersion(), s.kind.Resource.Kind, o.raw(e))
	}
	return o.events[e]
}

// bookmark is an event that says how far the watch has come, and that the state is
// whole if it ends one.
func (s *Server) bookmark(e wire.Encoding, version int64, whole bool) []byte {
	o := s.kind.empty()
	o.GetObjectKind().SetGroupVersionKind(s.kind.Resource.GroupVersionKind())
	o.SetResourceVersion(text(version))
	if whole {
		o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return event(e, wire.Bookmark, s.kind.Resource.APIVersion(), s.kind.Resource.Kind, encode(o, e))
}

// foreign is an event with something else than what was asked for.
func foreign(e wire.Encoding) []byte {
	o := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns-0", Name: "foreign", UID: "foreign", ResourceVersion: "1"},
	}
	return event(e, wire.Added, o.APIVersion, o.Kind, encode(o, e))
}

// garbled is the event of a change with an object that nobody can read.
func (s *Server) garbled(e wire.Encoding, kind string) []byte {
	raw := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":7}`, s.kind.Resource.Kind, s.kind.Resource.APIVersion())
	if e == wire.Protobuf {
		raw = []byte{0x0a, 0x7f, 'n', 'o'} // 1: 127 bytes, of which two are there
	}
	return event(e, kind, s.kind.Resource.APIVersion(), s.kind.Resource.Kind, raw)
}

func errorEvent(e wire.Encoding, s *metav1.Status) []byte {
	if e == wire.Protobuf {
		return event(e, wire.Error, "v1", "Status", must(s.Marshal()))
	}
	return event(e, wire.Error, "", "", must(json.Marshal(s)))
}

// list returns the body of a list.
func (s *Server) list(e wire.Encoding, version int64, next string, items []*stored) []byte {
	meta := metav1.ListMeta{ResourceVersion: text(version), Continue: next}
	apiVersion, kind := s.kind.Resource.APIVersion(), s.kind.Resource.Kind+"List"
	if e == wire.Protobuf {
		// All list messages: 1 metadata, 2 items.
		message := protowire.AppendTag(nil, 1, protowire.BytesType)
		message = protowire.AppendBytes(message, must(meta.Marshal()))
		for _, o := range items {
			message = protowire.AppendTag(message, 2, protowire.BytesType)
			message = protowire.AppendBytes(message, o.raw(e))
		}
		return must(wire.Seal(apiVersion, kind, message))
	}
	body := fmt.Appendf(nil, "{\"kind\":%q,\"apiVersion\":%q,\"metadata\":%s,\"items\":[", kind, apiVersion, must(json.Marshal(meta)))
	for i, o := range items {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, o.raw(e)...)
	}
	return append(body, "]}"...)
}

func newStatus(code int, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Causes: causes},
	}
}

func expired() *metav1.Status {
	return newStatus(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
}

// tooLarge is the answer to who asks for a version of the future, in the words of
// servers of today, or of those before 1.17.5.
func tooLarge(old bool) *metav1.Status {
	cause := metav1.StatusCause{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}
	if old {
		cause.Type = ""
	}
	s := newStatus(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Timeout: Too large resource version", cause)
	s.Details.RetryAfterSeconds = 1
	return s
}

func writeStatus(w http.ResponseWriter, e wire.Encoding, s *metav1.Status) {
	if s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	body := must(json.Marshal(s))
	if e == wire.Protobuf {
		body = must(wire.Seal("v1", "Status", must(s.Marshal())))
	}
	w.Header().Set("Content-Type", e.MediaType())
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(body) //nolint:gosec // no browser is there to be fooled, and who is gone does not mind
}

// discovery is the answer that says how a custom kind is served.
func (k *Kind) discovery() []byte {
	return must(json.Marshal(metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: k.Resource.APIVersion(),
		APIResources: []metav1.APIResource{{Name: k.Resource.Plural, Kind: k.Resource.Kind, Namespaced: k.Resource.Namespaced,
			Verbs: metav1.Verbs{"get", "list", "watch"}}},
	}))
}
