// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"google.golang.org/protobuf/encoding/protowire"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
	"sigs.k8s.io/randfill"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// realMeta is metadata as a cluster has it.
func realMeta(i int) metav1.ObjectMeta {
	fields := metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},` +
		`"f:ownerReferences":{".":{},"k:{\"uid\":\"6e4c8a0e-3c6f-4d65-8c7e-2f1d2b1a9b11\"}":{}}},"f:spec":{"f:containers":` +
		`{"k:{\"name\":\"app\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},` +
		`"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{}}},` +
		`"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},` +
		`"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{}}},"f:dnsPolicy":{}}}`)
	when := metav1.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return metav1.ObjectMeta{
		Namespace: "team-a", Name: fmt.Sprintf("web-7d4b9c6f5-%05d", i), GenerateName: "web-7d4b9c6f5-",
		UID: "0b6b5b2e-52d5-4b0a-8a5d-7f7d5d9a2c11", ResourceVersion: fmt.Sprint(4_000_000 + i), Generation: 3,
		CreationTimestamp: when,
		Labels: map[string]string{
			"app": "web", "app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "7d4b9c6f5", "tier": "front",
		},
		Annotations: map[string]string{"checksum/config": "5f70bf18a08660b5d3f0e0cc8e6d1a1b", "note": "größer <als> \"sonst\"\n"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d4b9c6f5", UID: "6e4c8a0e-3c6f-4d65-8c7e-2f1d2b1a9b11",
			Controller: new(true), BlockOwnerDeletion: new(true),
		}},
		Finalizers: []string{"example.com/guard"},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &when, FieldsType: "FieldsV1", FieldsV1: fields},
			{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &when, FieldsType: "FieldsV1", FieldsV1: fields, Subresource: "status"},
		},
	}
}

// realPod is about 5 KB of protobuf.
func realPod(i int) *corev1.Pod {
	container := func(name string) corev1.Container {
		c := corev1.Container{
			Name: name, Image: "registry.example.com/shop/" + name + "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			Ports:                  []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			ImagePullPolicy: corev1.PullIfNotPresent,
			LivenessProbe:   &corev1.Probe{PeriodSeconds: 10, FailureThreshold: 3, TimeoutSeconds: 1},
			VolumeMounts:    []corev1.VolumeMount{{Name: "token", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
		}
		for n := range 12 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SHOP_SETTING_%d", n), Value: "https://settings.shop.svc.cluster.local:8443/v1"})
		}
		return c
	}
	when := metav1.Date(2026, 3, 4, 5, 6, 9, 0, time.UTC)
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: realMeta(i),
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container("web"), container("proxy")}, NodeName: "node-17", ServiceAccountName: "web",
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: "default-scheduler",
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.0.0.17", PodIP: "10.244.3.9", QOSClass: corev1.PodQOSBurstable},
	}
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: when})
	}
	return p
}

// realCustom is about 3 KB of JSON, as an API server writes custom resources.
func realCustom(i int) *unstructured.Unstructured {
	meta := realMeta(i)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta)
	if err != nil {
		panic(err)
	}
	rules := []any{}
	for n := range 6 {
		rules = append(rules, map[string]any{
			"host": fmt.Sprintf("shop-%d.example.com", n), "weight": int64(10 * n), "enabled": n%2 == 0, "timeout": 2.5,
			"match": map[string]any{"path": "/api/v1/orders", "headers": []any{"x-tenant", "x-request-id"}, "method": nil},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.com/v1", "kind": "Route", "metadata": fields,
		"spec":   map[string]any{"rules": rules, "replicas": int64(3)},
		"status": map[string]any{"observedGeneration": int64(3), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
}

func marshal(t testing.TB, e wire.Encoding, o any) []byte {
	t.Helper()
	var raw []byte
	var err error
	if e == wire.Protobuf {
		raw, err = o.(interface{ Marshal() ([]byte, error) }).Marshal()
	} else {
		raw, err = json.Marshal(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// sameMeta compares what a Head says with what the decoder says.
func sameMeta(t testing.TB, h *wire.Head, want object.Object) {
	t.Helper()
	have, err := metaOf(h)
	if err != nil {
		return
	}
	meta := object.MetaOf(want)
	if have.Created.Equal(meta.Created) && have.Deleted.Equal(meta.Deleted) {
		have.Created, have.Deleted = meta.Created, meta.Deleted
	}
	if !reflect.DeepEqual(have, meta) {
		t.Fatalf("metadata\n%#v\n%T has\n%#v", have, want, meta)
	}
	if version := want.GetResourceVersion(); version != string(h.ResourceVersion) {
		t.Fatalf("resourceVersion %q, %T has %q", h.ResourceVersion, want, version)
	}
	annotations, err := h.Annotations()
	if err == nil && !reflect.DeepEqual(annotations, want.GetAnnotations()) {
		t.Fatalf("annotations\n%v\n%T has\n%v", annotations, want, want.GetAnnotations())
	}
}

// sameHead holds ReadHead and AppendSlim against decoding raw into an object of
// into's type: they say the same, or one of them has an error. It reports whether
// both read it.
func sameHead(t testing.TB, e wire.Encoding, raw []byte, into object.Object) bool {
	t.Helper()
	var h wire.Head
	if err := e.ReadHead(raw, &h); err != nil {
		if meta, err := metaOf(&h); err != nil || !reflect.DeepEqual(meta, object.Meta{}) {
			t.Fatalf("a head of which reading failed says %+v, %v", meta, err)
		}
		return false
	}
	if e == wire.JSON && !json.Valid(raw) {
		t.Fatalf("a head of what is no JSON: %q", raw)
	}
	full := reflect.New(reflect.TypeOf(into).Elem()).Interface().(object.Object)
	slim := reflect.New(reflect.TypeOf(into).Elem()).Interface().(object.Object)
	cut := h.AppendSlim(nil)
	if e.Decode(raw, full) != nil {
		return false
	}
	sameMeta(t, &h, full)
	if err := e.Decode(cut, slim); err != nil {
		t.Fatalf("%T without managedFields: %v\n%q\n%q", into, err, raw, cut)
	}
	full.SetManagedFields(nil)
	if !reflect.DeepEqual(full, slim) {
		t.Fatalf("%T without managedFields:\n%+v\nwant\n%+v", into, slim, full)
	}
	sameRest(t, e, &h, slim, h.AppendRest(nil, false))
	var again wire.Head
	if err := e.ReadHead(cut, &again); err != nil {
		t.Fatalf("head of the object without managedFields: %v", err)
	}
	if !bytes.Equal(again.AppendSlim(nil), cut) {
		t.Fatal("managedFields were cut out twice")
	}
	if !bytes.Equal(again.AppendFamily(nil), h.AppendFamily(nil)) {
		t.Fatal("without managedFields the object has another family")
	}
	return true
}

// sameRest holds what AppendRest leaves against the decoded object, after what it
// leaves out has been given back.
func sameRest(t testing.TB, e wire.Encoding, h *wire.Head, want object.Object, rest []byte) {
	t.Helper()
	have := reflect.New(reflect.TypeOf(want).Elem()).Interface().(object.Object)
	if err := e.Decode(rest, have); err != nil {
		t.Fatalf("%T without what its head has: %v\n%q", want, err, rest)
	}
	if e == wire.Protobuf {
		m, err := metaOf(h)
		if err != nil {
			t.Fatal(err)
		}
		if have.GetName()+have.GetNamespace()+string(have.GetUID())+have.GetResourceVersion() != "" ||
			len(have.GetLabels())+len(have.GetOwnerReferences())+len(have.GetFinalizers()) > 0 {
			t.Fatalf("%T has still what its head has: %+v", want, have)
		}
		have.SetName(m.Name)
		have.SetNamespace(m.Namespace)
		have.SetUID(m.UID)
		have.SetResourceVersion(string(h.ResourceVersion))
		have.SetLabels(m.Labels.Map())
		have.SetOwnerReferences(m.OwnerReferences)
		have.SetFinalizers(m.Finalizers)
	}
	if !reflect.DeepEqual(have, want) {
		t.Fatalf("%T put together again:\n%+v\nwant\n%+v", want, have, want)
	}
}

// The property of a Head, for every kind that an API server has.
func TestHeadIsWhatTheDecoderSaysForEveryBuiltInKind(t *testing.T) {
	fill := randfill.NewWithSeed(1).NilChance(0.3).NumElements(1, 3).MaxDepth(7).Funcs(
		func(s *string, c randfill.Continue) { *s = text(c.Rand.Uint64()) },
		func(x *metav1.Time, c randfill.Continue) { x.Time = time.Unix(c.Int63n(4e9), 0) },
		func(x *metav1.FieldsV1, _ randfill.Continue) { x.SetRawString(`{"f:spec":{"f:x":{}}}`) },
		func(x *runtime.RawExtension, _ randfill.Continue) { x.Raw = []byte(`{"a":1}`) },
	)
	kinds := 0
	// In order: they share one stream of random numbers.
	for _, kind := range slices.SortedFunc(maps.Keys(scheme.Scheme.AllKnownTypes()), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		typed, err := scheme.Scheme.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		o, ok := typed.(object.Object)
		if !ok || kind.Version == runtime.APIVersionInternal {
			continue
		}
		kinds++
		for _, e := range []wire.Encoding{wire.Protobuf, wire.JSON} {
			for range 2 {
				fill.Fill(o)
				raw := marshal(t, e, o)
				if !sameHead(t, e, raw, o) {
					var h wire.Head
					t.Errorf("%s, %s: %v", kind, e, e.ReadHead(raw, &h))
				}
			}
		}
	}
	if kinds < 100 {
		t.Errorf("only %d kinds were compared", kinds)
	}
}

// text is text that needs care in JSON.
func text(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	parts := []string{"a", "web", "\"", "\\", "/", "\n", "\x01", "ü", "\u2028", "😀", "<b>", "{", "}", "[", "]", ",", ":", "null", "12", strings.Repeat("long ", 8)}
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()
}

func TestHeadOfRealObjects(t *testing.T) {
	pod := realPod(1)
	now := metav1.Now().Rfc3339Copy()
	pod.DeletionTimestamp = &now
	for _, e := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		raw := marshal(t, e, pod)
		if !sameHead(t, e, raw, pod) || !sameHead(t, e, raw, &metav1.PartialObjectMetadata{}) {
			t.Errorf("%s was not read", e)
		}
	}
	if !sameHead(t, wire.JSON, marshal(t, wire.JSON, realCustom(1)), &unstructured.Unstructured{}) {
		t.Error("the custom resource was not read")
	}
}

// A Head is used again and again, and nothing of the last object stays.
func TestHeadForgetsTheObjectBefore(t *testing.T) {
	var h wire.Head
	for _, e := range []wire.Encoding{wire.Protobuf, wire.JSON, wire.Protobuf} {
		if err := e.ReadHead(marshal(t, e, realPod(1)), &h); err != nil {
			t.Fatal(err)
		}
		bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
		if err := e.ReadHead(marshal(t, e, bare), &h); err != nil {
			t.Fatal(err)
		}
		sameMeta(t, &h, bare)
		if err := e.ReadHead([]byte("\x0a\x05{"), &h); !errors.Is(err, wire.ErrMalformed) {
			t.Fatalf("%v, want ErrMalformed", err)
		}
		if meta, err := metaOf(&h); err != nil || !reflect.DeepEqual(meta, object.Meta{}) || len(h.AppendSlim(nil)) != 0 {
			t.Errorf("after an error: %+v, %v", meta, err)
		}
	}
}

func TestReadHeadAllocatesNothing(t *testing.T) {
	for _, e := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		raw := marshal(t, e, realPod(1))
		var h wire.Head
		var b []byte
		if n := testing.AllocsPerRun(100, func() {
			if err := e.ReadHead(raw, &h); err != nil {
				t.Fatal(err)
			}
			b = h.AppendSlim(h.AppendFamily(h.AppendLabels(b[:0])))
		}); n != 0 {
			t.Errorf("%s: %v allocations", e, n)
		}
	}
}

// Objects of one origin are of one family, whatever else differs, and what differs
// in a family is told.
func TestFamilyIsLabelsOwnersAndFinalizers(t *testing.T) {
	for _, e := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		family := func(change func(*corev1.Pod)) string {
			pod := realPod(1)
			change(pod)
			var h wire.Head
			if err := e.ReadHead(marshal(t, e, pod), &h); err != nil {
				t.Fatal(err)
			}
			return string(h.AppendFamily(nil))
		}
		first := family(func(*corev1.Pod) {})
		if family(func(p *corev1.Pod) {
			p.Name, p.UID, p.ResourceVersion, p.Generation, p.Annotations, p.ManagedFields = "b", "c", "7", 9, nil, nil
			p.Status.Phase = corev1.PodFailed
		}) != first {
			t.Errorf("%s: a sibling is of another family", e)
		}
		for what, change := range map[string]func(*corev1.Pod){
			"label":      func(p *corev1.Pod) { p.Labels["tier"] = "back" },
			"no labels":  func(p *corev1.Pod) { p.Labels = nil },
			"owner":      func(p *corev1.Pod) { p.OwnerReferences[0].Controller = new(false) },
			"finalizers": func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "other") },
		} {
			if family(change) == first {
				t.Errorf("%s: another %s does not make another family", e, what)
			}
		}
	}
}

// Where decoders make different things of the same JSON, there is no head.
func TestHeadDoesNotGuess(t *testing.T) {
	for _, metadata := range []string{
		`5`, `[]`, `{"name":5}`, `{"generation":1.0}`, `{"generation":"1"}`, `{"generation":9223372036854775808}`,
		`{"creationTimestamp":""}`, `{"creationTimestamp":"null"}`, `{"deletionTimestamp":"yesterday"}`,
		`{"labels":{"a":1}}`, `{"labels":[]}`, `{"name":"a","name":"b"}`, `{"managedFields":[],"managedFields":[]}`,
		`{"name":"a"}, "metadata":{"name":"b"}`,
	} {
		var h wire.Head
		if err := wire.JSON.ReadHead([]byte(`{"metadata":`+metadata+`}`), &h); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", metadata, err)
		}
	}
	for _, metadata := range []string{
		`{"ownerReferences":[null]}`, `{"ownerReferences":{}}`, `{"ownerReferences":[{"name":1}]}`, `{"ownerReferences":[{"controller":"true"}]}`,
		`{"ownerReferences":[{"uid":"a","uid":null}]}`, `{"finalizers":[null]}`, `{"finalizers":["a",1]}`, `{"finalizers":"a"}`,
	} {
		var h wire.Head
		if err := wire.JSON.ReadHead([]byte(`{"metadata":`+metadata+`}`), &h); err != nil {
			t.Fatalf("%s: %v", metadata, err)
		}
		if _, err := metaOf(&h); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", metadata, err)
		}
	}
	twice := marshal(t, wire.Protobuf, realPod(1))
	var h wire.Head
	if err := wire.Protobuf.ReadHead(append(twice, twice...), &h); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("metadata twice: %v, want ErrMalformed", err)
	}
}

// Random messages of fields that are right as such reach what random bytes do not:
// fields in any order, many times, of any type, groups, map entries without key.
func TestHeadOfAnyFieldsIsWhatTheDecoderSays(t *testing.T) {
	read := 0
	rapid.Check(t, func(r *rapid.T) {
		raw := protowire.AppendTag(nil, 1, protowire.BytesType)
		raw = protowire.AppendBytes(raw, anyMessage(r, 2))
		raw = append(raw, anyMessage(r, 1)...)
		if sameHead(t, wire.Protobuf, raw, &metav1.PartialObjectMetadata{}) {
			read++
		}
	})
	t.Log(read, "were read by both")
}

// anyMessage draws fields, mostly such that metav1.ObjectMeta has.
func anyMessage(r *rapid.T, depth int) []byte {
	var b []byte
	for range rapid.IntRange(0, 6).Draw(r, "fields") {
		number := protowire.Number(rapid.IntRange(1, 18).Draw(r, "number"))
		typ := protowire.BytesType
		if number == 7 || number == 10 {
			typ = protowire.VarintType
		}
		if rapid.IntRange(0, 19).Draw(r, "odd") == 0 {
			typ = rapid.SampledFrom([]protowire.Type{
				protowire.VarintType, protowire.Fixed32Type, protowire.Fixed64Type, protowire.BytesType, protowire.StartGroupType,
			}).Draw(r, "type")
		}
		b = protowire.AppendTag(b, number, typ)
		switch typ {
		case protowire.VarintType:
			b = protowire.AppendVarint(b, rapid.Uint64().Draw(r, "varint"))
		case protowire.Fixed32Type:
			b = protowire.AppendFixed32(b, 7)
		case protowire.Fixed64Type:
			b = protowire.AppendFixed64(b, 7)
		case protowire.StartGroupType:
			b = protowire.AppendTag(append(b, anyMessage(r, 0)...), number, protowire.EndGroupType)
		default:
			value := []byte(rapid.SampledFrom([]string{"", "a", "b", "12", "\x08\x05", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"}).Draw(r, "text"))
			if depth > 0 && number > 7 {
				value = anyMessage(r, depth-1)
			}
			b = protowire.AppendBytes(b, value)
		}
	}
	return b
}

// The same for JSON: members in any order and number, with values of any kind.
func TestHeadOfAnyMembersIsWhatTheDecodersSay(t *testing.T) {
	read := 0
	rapid.Check(t, func(r *rapid.T) {
		raw := []byte(anyMembers(r, 3))
		for _, into := range []object.Object{&corev1.Pod{}, &metav1.PartialObjectMetadata{}, &unstructured.Unstructured{}} {
			if sameHead(t, wire.JSON, raw, into) {
				read++
			}
		}
	})
	t.Log(read, "were read by both")
}

func anyMembers(r *rapid.T, depth int) string {
	names := [][]string{
		{"a", "b", "c", `\u0061`, "uid", "name", "controller", "apiVersion"},
		{"labels", "annotations", "ownerReferences", "finalizers", "managedFields", "x"},
		{
			"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "labels", "annotations",
			"ownerReferences", "finalizers", "managedFields", "Name", `n\u0061me`, "x",
		},
		{"metadata", "metadata", "kind", "spec", `met\u0061data`},
	}[depth]
	var members []string
	for range rapid.IntRange(0, 4).Draw(r, "members") {
		name := rapid.SampledFrom(names).Draw(r, "name")
		members = append(members, fmt.Sprintf("%q", name))
		members[len(members)-1] = space(r) + `"` + name + `"` + space(r) + ":" + space(r) + anyValue(r, name, depth) + space(r)
	}
	return space(r) + "{" + strings.Join(members, ",") + "}" + space(r)
}

func anyValue(r *rapid.T, name string, depth int) string {
	if rapid.IntRange(0, 9).Draw(r, "odd") == 0 {
		return rapid.SampledFrom([]string{"null", "1", "-0", "1.5", "1e3", "true", "[]", "{}", `""`, `"\ud800"`, "\"\xff\"", "[null]", "[{}]"}).Draw(r, "value")
	}
	switch name {
	case "metadata", `met\u0061data`:
		return anyMembers(r, 2)
	case "labels", "annotations":
		return anyMembers(r, 0)
	case "ownerReferences", "managedFields":
		return "[" + anyMembers(r, 0) + "]"
	case "finalizers":
		return rapid.SampledFrom([]string{"[]", `["a"]`, `[ "a" , "b\n" ]`}).Draw(r, "finalizers")
	case "generation":
		return rapid.SampledFrom([]string{"0", "7", "-3"}).Draw(r, "generation")
	case "creationTimestamp", "deletionTimestamp":
		return rapid.SampledFrom([]string{`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.25+02:00"`, `"0001-01-01T00:00:00Z"`}).Draw(r, "time")
	case "controller":
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(r, "controller")
	case "spec":
		return rapid.SampledFrom([]string{"{}", `{"metadata":{"name":"inner"}}`}).Draw(r, "spec")
	}
	_ = depth
	return rapid.SampledFrom([]string{`""`, `"a"`, `"12"`, `"\u00e4\""`, `"ä"`}).Draw(r, "text")
}

func space(r *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n\t"}).Draw(r, "space")
}

// seeds are whole objects, and small ones, which mutate better.
func seeds(f *testing.F, e wire.Encoding) {
	pod, deployment := realPod(1), &appsv1.Deployment{ObjectMeta: realMeta(2)}
	pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
	f.Add(marshal(f, e, pod))
	f.Add(marshal(f, e, deployment))
	f.Add(marshal(f, e, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}))
	f.Add(marshal(f, e, &corev1.ConfigMap{}))
}

func FuzzHeadProtobuf(f *testing.F) {
	seeds(f, wire.Protobuf)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, into := range []object.Object{&corev1.Pod{}, &metav1.PartialObjectMetadata{}, &appsv1.Deployment{}} {
			sameHead(t, wire.Protobuf, raw, into)
		}
	})
}

func FuzzHeadJSON(f *testing.F) {
	seeds(f, wire.JSON)
	f.Add(marshal(f, wire.JSON, realCustom(1)))
	for _, s := range []string{
		`{"metadata":null}`, `{"metadata":{}}`, `{}`, `null`, ` { "metadata" : { "managedFields" : null , "name" : "x" } } `,
		`{"metadata":{"name":null,"labels":{"b":"1","a":null,"b":"2"},"annotations":null,"finalizers":["x"],"ownerReferences":[{"uid":"u","controller":null}]}}`,
		`{"metadat\u0061":{"n\u0061me":"\ud83d\ude00","uid":"` + "\xff" + `","generation":-5,"creationTimestamp":"2026-01-02T03:04:05.5+01:00"}}`,
		`{"metadata":{"name":"a","managedFields":[{}]},"spec":{"metadata":{"name":"b"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, into := range []object.Object{&corev1.Pod{}, &metav1.PartialObjectMetadata{}, &unstructured.Unstructured{}} {
			sameHead(t, wire.JSON, raw, into)
		}
	})
}

// metaOf is what object.MetaOf says of the decoded object.
func metaOf(h *wire.Head) (object.Meta, error) {
	owners, err := h.Owners()
	if err != nil {
		return object.Meta{}, err
	}
	finalizers, err := h.Finalizers()
	if err != nil {
		return object.Meta{}, err
	}
	version, _ := object.ParseVersion(string(h.ResourceVersion))
	return object.Meta{
		Key:             object.Key{Namespace: string(h.Namespace), Name: string(h.Name)},
		UID:             types.UID(h.UID),
		Version:         version,
		Generation:      h.Generation,
		Labels:          object.Labels(h.AppendLabels(nil)),
		OwnerReferences: owners,
		Finalizers:      finalizers,
		Created:         h.Created,
		Deleted:         h.Deleted,
	}, nil
}

// A head that was dropped keeps nothing of what it was read from, whose buffer may be a large one that others use meanwhile.
func TestADroppedHeadKeepsNoBytes(t *testing.T) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: realMeta(1)}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	message, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for encoding, raw := range map[wire.Encoding][]byte{wire.JSON: text, wire.Protobuf: message} {
		head, kept := new(wire.Head), weak.Pointer[byte]{}
		func() {
			buffer := bytes.Clone(raw)
			kept = weak.Make(&buffer[0])
			if err := encoding.ReadHead(buffer, head); err != nil {
				t.Fatal(err)
			}
		}()
		goruntime.GC()
		if kept.Value() == nil {
			t.Errorf("%v: a head that is in use does not keep its bytes", encoding)
		}
		head.Drop()
		goruntime.GC()
		if kept.Value() != nil {
			t.Errorf("%v: the bytes of a dropped head are still in memory", encoding)
		}
		goruntime.KeepAlive(head)
	}
}
