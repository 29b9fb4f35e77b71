// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// corpusSeed makes the corpus what it is. Another one gives other objects of the
// same sizes.
const corpusSeed = 20260101

// kind is one kind of objects that the corpus has.
type kind struct {
	name     string // on the command line and in the names of measures
	resource object.Resource
	encoding wire.Encoding
	// share is how many of these there are for each Pod, at most 1: a cluster has
	// fewer Nodes than Pods.
	share float64
	// make returns the i-th object, the same one each time: a corpus of a thousand
	// is the beginning of one of a million.
	make func(i int) object.Object
}

var (
	podKind = &kind{name: "pods", share: 1, encoding: wire.Protobuf, make: func(i int) object.Object { return pod(i) },
		resource: object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}}
	nodeKind = &kind{name: "nodes", share: 0.1, encoding: wire.Protobuf, make: func(i int) object.Object { return node(i) },
		resource: object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}}
	configMapKind = &kind{name: "configmaps", share: 0.25, encoding: wire.Protobuf, make: func(i int) object.Object { return configMap(i) },
		resource: object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}}
	// What compresses badly: a design that rests on compression is worst here.
	randomKind = &kind{name: "random", share: 0.1, encoding: wire.Protobuf, make: func(i int) object.Object { return randomConfigMap(i) },
		resource: configMapKind.resource}
	certificateKind = &kind{name: "certificates", share: 0.25, encoding: wire.JSON, make: func(i int) object.Object { return certificate(i) },
		resource: object.Resource{Group: "certs.example.com", Version: "v1", Plural: "certificates", Kind: "Certificate", Namespaced: true}}
)

// kinds are all of the corpus, in the order in which they are measured.
var kinds = []*kind{podKind, nodeKind, configMapKind, certificateKind, randomKind}

func kindNamed(name string) (*kind, error) {
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
	}
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return nil, fmt.Errorf("there is no kind %q in the corpus; it has %s", name, strings.Join(names, ", "))
}

// count is how many objects of the kind stand beside so many Pods.
func (k *kind) count(pods int) int { return max(1, int(float64(pods)*k.share)) }

func (k *kind) groupVersionKind() schema.GroupVersionKind { return k.resource.GroupVersionKind() }

func (k *kind) groupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.resource.Group, Version: k.resource.Version, Resource: k.resource.Plural}
}

// marshal encodes an object as a server sends it: protobuf without its envelope,
// or JSON with kind and apiVersion in it.
func (k *kind) marshal(o object.Object) ([]byte, error) {
	if k.encoding == wire.JSON {
		return json.Marshal(o)
	}
	m, ok := o.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("encoding %s: %T has no protobuf form", k.name, o)
	}
	return m.Marshal()
}

// firstVersion is the resourceVersion of a kind's first object. Versions of the
// corpus and of its changes all have ten digits, so that one can be written over
// another.
const firstVersion = 5_000_000_000

// dice are the random choices of one object, or of what several objects share.
type dice struct{ *rand.Rand }

// diceFor returns the choices of the i-th of something.
func diceFor(what string, i int) dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(what)) // a hash does not fail
	return dice{rand.New(rand.NewPCG(corpusSeed^h.Sum64(), uint64(i)*0x9e3779b97f4a7c15))}
}

func (d dice) text(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[d.IntN(len(alphabet))]
	}
	return string(b)
}

func (d dice) hex(n int) string { return d.text("0123456789abcdef", n) }

// suffixLetters are those of generated names.
// Source: k8s.io/apimachinery/pkg/util/rand.
const suffixLetters = "bcdfghjklmnpqrstvwxz2456789"

func (d dice) uid() types.UID {
	return types.UID(d.hex(8) + "-" + d.hex(4) + "-4" + d.hex(3) + "-" + d.text("89ab", 1) + d.hex(3) + "-" + d.hex(12))
}

func (d dice) of(choices ...string) string { return choices[d.IntN(len(choices))] }

// epoch is when the corpus's cluster was made.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// created is a moment within the cluster's first quarter.
func (d dice) created() time.Time { return epoch.Add(time.Duration(d.IntN(90*24*3600)) * time.Second) }

func at(t time.Time, seconds int) metav1.Time {
	return metav1.NewTime(t.Add(time.Duration(seconds) * time.Second))
}

// namespaces are a hundred, of which the first hold the most: one in ten objects
// is in the first, one in two hundred in the last.
func (d dice) namespace() string {
	x := d.Float64()
	n := int(x * x * 100)
	return teams[n%len(teams)] + "-" + []string{"prod", "staging", "dev", "qa"}[n/len(teams)%4] + "-" + strconv.Itoa(n)
}

var (
	teams    = []string{"payments", "checkout", "search", "catalog", "identity", "shipping", "ledger", "insights"}
	services = []string{"api", "worker", "gateway", "consumer", "scheduler", "indexer", "frontend", "relay", "exporter", "sync"}
	regions  = []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"}
)

// nodeName is the name of the i-th Node.
func nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", i>>16&0xff, i>>8&0xff, i&0xff)
}

// podIP is an address that no other of 16 million Pods has: an odd factor makes a
// permutation of the lower 24 bits.
func podIP(i int) string {
	n := uint32(i) * 2654435761 & 0xffffff
	return fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&0xff, n&0xff)
}

func version(i int) string { return strconv.FormatUint(firstVersion+uint64(i), 10) }

// fields writes a managedFields entry of a manager that owns the leaves of the
// given paths. A path's parts are joined by spaces.
func fields(manager, subresource string, when metav1.Time, paths ...string) metav1.ManagedFieldsEntry {
	tree := map[string]any{}
	for _, path := range paths {
		here := tree
		for part := range strings.SplitSeq(path, " ") {
			if !strings.HasPrefix(part, "k:") && part != "." {
				part = "f:" + part
			}
			next, ok := here[part].(map[string]any)
			if !ok {
				next = map[string]any{}
				here[part] = next
			}
			here = next
		}
	}
	var b strings.Builder
	writeFields(&b, tree)
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &when,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(b.String()), Subresource: subresource,
	}
}

func writeFields(b *strings.Builder, tree map[string]any) {
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(tree)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(name))
		b.WriteByte(':')
		writeFields(b, tree[name].(map[string]any))
	}
	b.WriteByte('}')
}

func condition[T ~string](kind T, when metav1.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodConditionType(kind), Status: corev1.ConditionTrue, LastTransitionTime: when}
}
