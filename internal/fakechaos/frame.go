// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// frame is one event of a watch as it is sent.
type frame struct {
	kind    string // of the event
	version int64  // of its object
	bytes   []byte
}

// read returns what an event is.
func read(e wire.Encoding, p []byte) (kind string, version int64, err error) {
	event, err := wire.NewWatchReader(bytes.NewReader(p), e, 0).Next()
	if err != nil || event.Type == wire.Error {
		return event.Type, 0, err
	}
	var head wire.Head
	if err := e.ReadHead(event.Object, &head); err != nil {
		return event.Type, 0, err
	}
	return event.Type, number(string(head.ResourceVersion)), nil
}

// newFrame makes an event of an object without envelope.
func newFrame(e wire.Encoding, kind, apiVersion, objectKind string, raw []byte) frame {
	if e == wire.JSON {
		return frame{kind: kind, bytes: fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", kind, raw)}
	}
	event := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: must(wire.Seal(apiVersion, objectKind, raw))}}
	message := must(event.Marshal())
	return frame{kind: kind, bytes: append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)}
}

// endOfState is the bookmark that says that the state is whole.
func (k *Kind) endOfState(e wire.Encoding, version int64) frame {
	o := k.empty()
	o.GetObjectKind().SetGroupVersionKind(k.Resource.GroupVersionKind())
	o.SetResourceVersion(text(version))
	o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return newFrame(e, wire.Bookmark, k.Resource.APIVersion(), k.Resource.Kind, encode(o, e))
}

// garbled is the event of a change with an object that cannot be read.
func (k *Kind) garbled(e wire.Encoding, kind string) frame {
	raw := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":7}`, k.Resource.Kind, k.Resource.APIVersion())
	if e == wire.Protobuf {
		raw = []byte{0x0a, 0x7f, 'n', 'o'} // 1: 127 bytes, of which two are there
	}
	return newFrame(e, kind, k.Resource.APIVersion(), k.Resource.Kind, raw)
}

// foreign is an event with an object of another kind.
func foreign(e wire.Encoding) frame {
	o := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns-0", Name: "foreign", UID: "foreign", ResourceVersion: "1"},
	}
	return newFrame(e, wire.Added, o.APIVersion, o.Kind, encode(o, e))
}

// errorEvent is the event that ends a watch with an error.
func errorEvent(e wire.Encoding, refusal *apierrors.StatusError) frame {
	s := refusal.ErrStatus
	s.APIVersion, s.Kind = "v1", "Status"
	if e == wire.Protobuf {
		return newFrame(e, wire.Error, s.APIVersion, s.Kind, must(s.Marshal()))
	}
	return newFrame(e, wire.Error, s.APIVersion, s.Kind, must(json.Marshal(s)))
}

// encode returns an object without envelope.
func encode(o object.Object, e wire.Encoding) []byte {
	if e == wire.Protobuf {
		return must(o.(interface{ Marshal() ([]byte, error) }).Marshal())
	}
	return must(json.Marshal(o))
}

// must is for the encoding of objects that this package made itself.
func must(raw []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("fakechaos: encoding: %v", err))
	}
	return raw
}
