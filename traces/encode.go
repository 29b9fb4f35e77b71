// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/setpoint-io/setpoint/runs"
)

// scope names the instrumentation.
const scope = "github.com/setpoint-io/setpoint/traces"

// Numbers of fields.
// Source: https://github.com/open-telemetry/opentelemetry-proto, collector/trace/v1/trace_service.proto,
// trace/v1/trace.proto, common/v1/common.proto and resource/v1/resource.proto.
const (
	requestResourceSpans = 1

	resourceSpansResource = 1
	resourceSpansScope    = 2
	resourceAttribute     = 1
	scopeSpansScope       = 1
	scopeSpansSpan        = 2
	scopeName             = 1

	spanTrace         = 1
	spanID            = 2
	spanName          = 5
	spanKind          = 6
	spanStart         = 7
	spanEnd           = 8
	spanAttribute     = 9
	spanEvent         = 11
	spanDroppedEvents = 12
	spanLink          = 13
	spanStatus        = 15

	eventTime      = 1
	eventName      = 2
	eventAttribute = 3

	linkTrace     = 1
	linkSpan      = 2
	linkAttribute = 4

	statusMessage = 2
	statusCode    = 3

	attributeKey   = 1
	attributeValue = 2

	valueString = 1
	valueInt    = 3
	valueArray  = 5
	arrayValue  = 1
)

// Values of enumerations.
const (
	kindInternal = 1
	statusError  = 2
)

// message is an encoded protobuf message.
type message []byte

func (m message) bytes(field protowire.Number, of []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), of)
}

// text appends a string, unless it is empty. A string of protobuf is valid UTF-8; the text of an error may not be.
func (m message) text(field protowire.Number, text string) message {
	if text == "" {
		return m
	}
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), strings.ToValidUTF8(text, "\uFFFD"))
}

func (m message) number(field protowire.Number, n uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), n)
}

func (m message) time(field protowire.Number, at time.Time) message {
	return binary.LittleEndian.AppendUint64(protowire.AppendTag(m, field, protowire.Fixed64Type), uint64(at.UnixNano()))
}

// attribute appends an attribute whose value is a text, unless the text is empty.
func (m message) attribute(field protowire.Number, key, value string) message {
	if value == "" {
		return m
	}
	return m.bytes(field, message(nil).text(attributeKey, key).bytes(attributeValue, message(nil).text(valueString, value)))
}

// count appends an attribute whose value is a number.
func (m message) count(field protowire.Number, key string, n int64) message {
	return m.bytes(field, message(nil).text(attributeKey, key).bytes(attributeValue, message(nil).number(valueInt, uint64(n))))
}

// list appends an attribute whose value is a list of texts, unless the list is empty.
func (m message) list(field protowire.Number, key string, values []string) message {
	if len(values) == 0 {
		return m
	}
	var array message
	for _, value := range values {
		array = array.bytes(arrayValue, message(nil).text(valueString, value))
	}
	return m.bytes(field, message(nil).text(attributeKey, key).bytes(attributeValue, message(nil).bytes(valueArray, array)))
}

// object appends the attributes of an object.
func (m message) object(field protowire.Number, o runs.Object) message {
	return m.attribute(field, "setpoint.object.group", o.Group).attribute(field, "setpoint.object.kind", o.Kind).
		attribute(field, "setpoint.object.namespace", o.Namespace).attribute(field, "setpoint.object.name", o.Name).
		attribute(field, "setpoint.object.uid", string(o.UID))
}

// request returns an ExportTraceServiceRequest with spans of a process.
func request(resource map[string]string, spans []message) message {
	var of message
	for _, name := range slices.Sorted(maps.Keys(resource)) {
		of = of.attribute(resourceAttribute, name, resource[name])
	}
	in := message(nil).bytes(scopeSpansScope, message(nil).text(scopeName, scope))
	for _, span := range spans {
		in = in.bytes(scopeSpansSpan, span)
	}
	return message(nil).bytes(requestResourceSpans, message(nil).bytes(resourceSpansResource, of).bytes(resourceSpansScope, in))
}
