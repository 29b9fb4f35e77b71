// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// realPod is a Pod as a ReplicaSet makes it and a kubelet reports it: most of it is
// what its siblings have too.
func realPod(n int) *corev1.Pod {
	name, owner := fmt.Sprintf("web-%d-%05x", n/10, n), fmt.Sprintf("owner-%d", n/10)
	p := pod(name, fmt.Sprint(n+1), uid(types.UID(fmt.Sprintf("7d9e%04x-uid", n))), ownedBy(types.UID(owner)))
	p.Labels = map[string]string{"app": "web", "pod-template-hash": owner, "team": fmt.Sprint("team-", n%3)}
	p.Annotations = map[string]string{"example.com/checksum": fmt.Sprintf("%x", rand.New(rand.NewPCG(uint64(n), 1)).Uint64())}
	for i := range 2 {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("container-", i), Image: "registry.example.com/team/web:v1.2.3", Command: []string{"/usr/bin/web", "--listen=:8080"},
			Env: []corev1.EnvVar{
				{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
				{Name: "INSTANCE", Value: fmt.Sprint(n)},
			},
			Resources:              corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}},
			VolumeMounts:           []corev1.VolumeMount{{Name: "kube-api-access-" + fmt.Sprint(n%10), ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: fmt.Sprint("container-", i), Ready: true, Image: "registry.example.com/team/web:v1.2.3",
			ContainerID: fmt.Sprintf("containerd://%016x", n*2+i), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	p.Spec.NodeName, p.Status.PodIP, p.Status.Phase = fmt.Sprint("node-", n%50), fmt.Sprintf("10.0.%d.%d", n/250, n%250), corev1.PodRunning
	for _, condition := range []corev1.PodConditionType{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue})
	}
	return p
}

// mustEntry has an archive make an entry.
func mustEntry(t testing.TB, a *archive, o object.Object) *entry {
	t.Helper()
	f, err := frameOf(o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := a.entry(f)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// reads checks that an entry decodes to an object.
func reads(t testing.TB, e *entry, want object.Object) {
	t.Helper()
	have, err := e.decode()
	if err != nil {
		t.Fatalf("%s: %v", e.key(), err)
	}
	if !reflect.DeepEqual(have, want) {
		t.Fatalf("%s: have\n%+v\nwant\n%+v", e.key(), have, want)
	}
}

func TestAKindThatGrowsGetsADictionaryAndWhatWasThereBeforeIsWrittenAnew(t *testing.T) {
	const pods = 900 // a watch of a test holds a thousand
	for name, events := range map[string]func() []fakeEvent{
		"in one state": func() (events []fakeEvent) {
			for n := range pods {
				events = append(events, added(realPod(n)))
			}
			return append(events, allSent("5"))
		},
		"one by one": func() []fakeEvent {
			events := []fakeEvent{allSent("1")}
			for n := range pods {
				p := realPod(n)
				p.ResourceVersion = fmt.Sprint(n + 2)
				events = append(events, added(p))
			}
			return events
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watching(events()...)
				_, informer := newTestInformer(t, w)
				byNode := NewIndex(informer, func(i Item[*corev1.Pod]) ([]string, error) {
					o, err := i.Object()
					if err != nil {
						return nil, err
					}
					return []string{o.Spec.NodeName}, nil
				})
				var held []Item[*corev1.Pod] // states that a handler keeps, made before there was a dictionary
				add(t, informer, func(e Event[*corev1.Pod]) { held = append(held, e.New) }, HandlerOptions{EveryStep: true})
				defer start(t, informer)()
				time.Sleep(3 * restPeriod) // what changed is packed
				synctest.Wait()

				archive := informer.informer.archive
				form := archive.forms[wire.Protobuf]
				if form.dict == nil {
					t.Fatalf("%d bytes and no dictionary", archive.raw)
				}
				stored, onNode := 0, 0
				for key, item := range informer.All() {
					if f := item.entry.form; f != form && (f.base == nil || f.base.form != form) {
						t.Errorf("%s is not written with the dictionary", key)
					}
					stored += len(item.entry.body())
				}
				for range byNode.Find("node-7") {
					onNode++
				}
				// What was written anew stands in the indexes too, and nothing else does.
				for key, item := range byNode.Find("node-0") {
					if item.entry != informer.Snapshot().Get(key).entry {
						t.Errorf("the index has another entry of %s", key)
					}
				}
				for key, item := range informer.Snapshot().ControlledBy("", "owner-0") {
					if item.entry != informer.Snapshot().Get(key).entry {
						t.Errorf("the index of owners has another entry of %s", key)
					}
				}
				if informer.Snapshot().Len() != pods || onNode != pods/50 || len(held) != pods {
					t.Errorf("%d objects, %d on a node, told of %d", informer.Snapshot().Len(), onNode, len(held))
				}
				if stored != archive.stored || archive.stored > archive.raw/3 {
					t.Errorf("%d bytes are stored for %d, the archive counts %d", stored, archive.raw, archive.stored)
				}
				for n := range pods {
					want := realPod(n)
					if name == "one by one" {
						want.ResourceVersion = fmt.Sprint(n + 2)
					}
					reads(t, informer.Snapshot().Get(object.KeyOf(want)).entry, want)
				}
				before := 0
				for _, item := range held {
					if item.entry.form.dict == nil && item.entry.packing != patched {
						before++
					}
					if o, err := item.Object(); err != nil || o.Spec.NodeName == "" {
						t.Errorf("a state from before: %v, %v", o, err)
					}
				}
				if before == 0 {
					t.Error("no state from before there was a dictionary was held")
				}
			})
		})
	}
}

// A list may bring so many objects that the kind gets its dictionary, and what had changed before may be packed within the list.
func TestADictionaryThatIsMadeWithinAListIsForAllOfIt(t *testing.T) {
	_, informer := newTestInformer(t)
	i := informer.informer
	i.begin(false)
	packed := false
	for n := range 2000 {
		f, err := frameOf(realPod(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := i.add(f); err != nil {
			t.Fatal(err)
		}
		if !packed && i.archive.trainers[wire.Protobuf].before != nil {
			i.writing.Lock()
			i.pack(nil)
			i.writing.Unlock()
			packed = true
		}
	}
	i.whole("9")
	form := i.archive.forms[wire.Protobuf]
	if !packed || form.dict == nil {
		t.Fatalf("packed within the list: %v; dictionary: %v", packed, form.dict != nil)
	}
	for key, item := range informer.Snapshot().All() {
		if f := item.entry.form; f != form && (f.base == nil || f.base.form != form) {
			t.Errorf("%s is not written with the dictionary", key)
		}
	}
}

func TestATinyKindHasNoDictionary(t *testing.T) {
	a := newArchive(podContent())
	var entries []*entry
	for n := 0; a.raw < dictionaryFrom/2; n++ {
		entries = append(entries, mustEntry(t, a, realPod(n)))
	}
	// However often they change, they are few.
	for range 50 {
		for n, e := range entries {
			entries[n] = mustEntry(t, a, realPod(n))
			a.drop(e)
		}
	}
	if a.forms[wire.Protobuf].dict != nil {
		t.Errorf("%d objects of %d bytes have a dictionary", len(entries), a.raw)
	}
	reads(t, entries[0], realPod(0))
}

// A kind whose objects become others has its dictionary replaced, and what was written
// with the old one can be read for as long as it is there.
func TestAKindWhoseObjectsChangeTheirNatureGetsANewDictionary(t *testing.T) {
	texts := func(words []string) func(int) *corev1.ConfigMap {
		return func(n int) *corev1.ConfigMap {
			random := rand.New(rand.NewPCG(uint64(n), 7))
			var text strings.Builder
			for range 12 {
				text.WriteString(words[random.IntN(len(words))])
			}
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("m", n), UID: types.UID(fmt.Sprint("u", n)), ResourceVersion: fmt.Sprint(n + 1)},
				Data:       map[string]string{"text": text.String()},
			}
		}
	}
	words := func(seed uint64) []string {
		random := rand.New(rand.NewPCG(seed, 0))
		all := make([]string, 60)
		for i := range all {
			for range 40 {
				all[i] += string(rune('!' + random.IntN(90)))
			}
		}
		return all
	}
	one, other := texts(words(1)), texts(words(2))
	a := newArchive(&content{gvk: corev1.SchemeGroupVersion.WithKind("ConfigMap"), typ: reflect.TypeFor[*corev1.ConfigMap](),
		new: func() object.Object { return new(corev1.ConfigMap) }})
	type kept struct {
		entry *entry
		of    *corev1.ConfigMap
	}
	var all []kept
	n := 0
	write := func(of func(int) *corev1.ConfigMap) *entry {
		o := of(n)
		e := mustEntry(t, a, o)
		if n%500 == 0 {
			all = append(all, kept{e, o})
		}
		n++
		return e
	}
	for a.forms[wire.Protobuf].dict == nil {
		write(one)
	}
	first := a.forms[wire.Protobuf]
	for range window + 1 {
		write(one)
	}
	unfit := len(write(other).body())
	for a.forms[wire.Protobuf] == first {
		if write(other); n > 20*window {
			t.Fatalf("%d objects that do not fit, and no new dictionary", n)
		}
	}
	second := write(other)
	if fit := len(second.body()); second.form == first || second.form.dict == first.dict || fit > unfit/2 {
		t.Errorf("%d bytes with the new dictionary, %d with the old one", fit, unfit)
	}
	forms := map[*form]int{}
	for _, k := range all {
		forms[k.entry.form]++
		reads(t, k.entry, k.of)
	}
	if len(forms) < 2 || forms[first] == 0 {
		t.Errorf("entries are written in %d forms, want old ones too", len(forms))
	}
}

// A kind that changes its nature again and again is not learned again and again.
func TestTheMoreDictionariesAKindHasHadTheLongerTheNextIsWaitedFor(t *testing.T) {
	var l trainer
	a := newArchive(podContent())
	windowOf := func(packed int) {
		for range window {
			l.look(&entry{text: strings.Repeat("x", packed)}, 1000)
		}
	}
	var waits []int
	for range 3 {
		l.train(a, a.forms[wire.Protobuf])
		windowOf(100) // is what is usual
		n := 0
		for ; !l.sampling; n++ {
			windowOf(151)
		}
		waits = append(waits, n)
	}
	if !slices.Equal(waits, []int{5, 13, 29}) {
		t.Errorf("windows that did not fit until the next dictionary: %v", waits)
	}
	l.train(a, a.forms[wire.Protobuf])
	for range 200 {
		windowOf(100)
		windowOf(149)
	}
	if l.sampling {
		t.Error("a dictionary that fits well enough is to be replaced")
	}
}

func TestObjectsThatDoNotCompressAreKeptAsTheyAre(t *testing.T) {
	noise := make([]byte, 4096)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u", ResourceVersion: "1"}, Data: map[string][]byte{"key": noise}}
	a := newArchive(&content{gvk: corev1.SchemeGroupVersion.WithKind("Secret"), typ: reflect.TypeFor[*corev1.Secret](),
		new: func() object.Object { return new(corev1.Secret) }})
	e := mustEntry(t, a, o)
	if e.packing != plain || len(e.body()) != a.raw || a.stored != a.raw {
		t.Errorf("packing: %v, %d bytes of %d", e.packing, len(e.body()), a.raw)
	}
	reads(t, e, o)
	// What is read must not be what is kept.
	have, err := e.decode()
	if err != nil {
		t.Fatal(err)
	}
	clear(have.(*corev1.Secret).Data["key"])
	reads(t, e, o)
}

func TestSiblingsShareAFamilyThatGoesWithTheLast(t *testing.T) {
	a := newArchive(podContent())
	sibling := func(name, namespace string, change ...func(*corev1.Pod)) *entry {
		p := pod(name, "1", in(namespace), ownedBy("u1"))
		p.Labels, p.Finalizers = map[string]string{"app": "web"}, []string{"example.com/wait"}
		for _, c := range change {
			c(p)
		}
		return mustEntry(t, a, p)
	}
	one, two := sibling("a", "ns"), sibling("b", "ns")
	if one.family != two.family || one.family.members != 2 || len(a.families) != 1 {
		t.Fatalf("%d families of two siblings", len(a.families))
	}
	for what, other := range map[string]*entry{
		"namespace":  sibling("a", "elsewhere"),
		"label":      sibling("c", "ns", func(p *corev1.Pod) { p.Labels["app"] = "db" }),
		"owner":      sibling("c", "ns", ownedBy("u2")),
		"finalizers": sibling("c", "ns", func(p *corev1.Pod) { p.Finalizers = nil }),
	} {
		if other.family == one.family {
			t.Errorf("with another %s it is the same family", what)
		}
		a.drop(other)
	}
	a.drop(one)
	if len(a.families) != 1 {
		t.Errorf("%d families while there is one member", len(a.families))
	}
	a.drop(two)
	if len(a.families) != 0 || a.raw != 0 || a.stored != 0 {
		t.Errorf("nothing is left, but %d families and %d of %d bytes", len(a.families), a.stored, a.raw)
	}
	if o, err := two.decode(); err != nil || o.GetFinalizers()[0] != "example.com/wait" {
		t.Errorf("who holds a state that is gone reads %v, %v", o, err)
	}
}

func TestWhatHasNoNameOrTooLongOnesIsRefusedAndSaid(t *testing.T) {
	long := strings.Repeat("n", 70_000)
	for what, p := range map[string]*corev1.Pod{
		"a long name":    pod(long, "6", uid("u")),
		"a long UID":     pod("a", "6", uid(types.UID(long))),
		"a long version": pod("a", strings.Repeat("6", 70_000)),
		"no version":     pod("a", "six"),
		"no name":        pod("", "6", uid("u")),
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// It comes by a watch, is in the list that is asked for then, and is gone.
				source, informer := newTestInformer(t,
					watching(added(pod("b", "1")), allSent("5"), added(p)),
					errNoWatchList, fakeList{version: "6", objects: []object.Object{pod("b", "1"), p}},
					errNoWatchList, fakeList{version: "8", objects: []object.Object{pod("b", "7")}}, watching())
				defer start(t, informer)()
				<-informer.Synced()
				synctest.Wait()
				if err := informer.Trouble(); !isUndecodable(err) {
					t.Errorf("trouble: %v", err)
				}
				want(t, "store", contents(informer), "b@1")
				time.Sleep(time.Hour)
				synctest.Wait()
				want(t, "store", contents(informer), "b@7")
				want(t, "asked", source.log(), "watch list from \"\"\nwatch list from \"5\"\nlist from \"5\"\n"+
					"watch list from \"5\"\nlist from \"5\"\nwatch from \"8\"")
				if err := informer.Trouble(); err != nil {
					t.Errorf("trouble when it is gone: %v", err)
				}
				if n := len(informer.informer.archive.families); n != 1 {
					t.Errorf("%d families of one object", n)
				}
			})
		})
	}
}

func TestNamesUIDsAndVersionsMayBeLongTogether(t *testing.T) {
	text := strings.Repeat("x", 65_000)
	p := pod("n"+text, "1"+strings.Repeat("2", 65_000), uid(types.UID("u"+text)))
	e := mustEntry(t, newArchive(podContent()), p)
	reads(t, e, p)
	if m := e.meta(); m.Name != p.Name || m.UID != p.UID || string(m.Version) != p.ResourceVersion {
		t.Errorf("name of %d bytes, UID of %d, version of %d", len(m.Name), len(m.UID), len(m.Version))
	}
}

// gadget is a custom kind that somebody has a type for, and that has no protobuf.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size   int64             `json:"size"`
		Colors map[string]string `json:"colors,omitempty"`
	} `json:"spec"`
}

func (g *gadget) DeepCopyObject() kuberuntime.Object {
	c := *g
	g.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Colors = maps.Clone(g.Spec.Colors)
	return &c
}

func TestCustomKindsAreReadAsTheyWereWritten(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	typed := func(n int) object.Object {
		g := &gadget{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Gadget"}}
		g.Namespace, g.Name, g.UID, g.ResourceVersion = "ns", fmt.Sprint("g", n), types.UID(fmt.Sprint("u", n)), fmt.Sprint(n+1)
		g.Labels, g.Finalizers, g.Generation = map[string]string{"a": "b", "ünï": "<&>"}, []string{"example.com/f"}, 7
		g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Thing", Name: "t", UID: "o"}}
		g.Spec.Size, g.Spec.Colors = int64(n), map[string]string{"quoted \"\n": strings.Repeat("red", 50), "unit": fmt.Sprint(n)}
		return g
	}
	loose := func(n int) object.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget",
			"metadata": map[string]any{"namespace": "ns", "name": fmt.Sprint("g", n), "uid": fmt.Sprint("u", n), "resourceVersion": fmt.Sprint(n + 1),
				"labels": map[string]any{"a": "b"}, "generation": int64(7)},
			"spec": map[string]any{"size": int64(n), "ratio": 0.5, "list": []any{"a", int64(1), nil, true, map[string]any{}}, "none": nil,
				"text": strings.Repeat("of some length ", 12)},
		}}
	}
	for name, c := range map[string]struct {
		content *content
		object  func(int) object.Object
	}{
		"a type of one's own": {&content{gvk: kind, typ: reflect.TypeFor[*gadget](), new: func() object.Object { return new(gadget) }}, typed},
		"unstructured": {&content{gvk: kind, typ: reflect.TypeFor[*unstructured.Unstructured](),
			new: func() object.Object { return new(unstructured.Unstructured) }}, loose},
	} {
		t.Run(name, func(t *testing.T) {
			a := newArchive(c.content)
			var entries []*entry
			for n := 0; a.forms[wire.JSON].dict == nil; n++ {
				entries = append(entries, mustEntry(t, a, c.object(n)))
			}
			entries = append(entries, mustEntry(t, a, c.object(len(entries))))
			for n, e := range entries {
				reads(t, e, c.object(n))
				reads(t, a.rewrite(e, a.forms[wire.JSON]), c.object(n))
				if m, want := e.meta(), object.MetaOf(c.object(n)); !reflect.DeepEqual(m, want) {
					t.Fatalf("have %+v, want %+v", m, want)
				}
			}
			if last := entries[len(entries)-1]; last.packing == plain || last.form.dict == nil {
				t.Error("the last one is not compressed with the dictionary")
			}
		})
	}
}

// drawPod is any Pod that a server could send.
func drawPod(t *rapid.T) *corev1.Pod {
	text := rapid.StringN(0, 20, 60)
	texts := rapid.MapOfN(rapid.StringN(1, 8, 30), text, 0, 4)
	at := func(what string) metav1.Time {
		return metav1.Unix(rapid.Int64Range(-1<<31, 1<<33).Draw(t, what), 0)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: text.Draw(t, "namespace"), Name: rapid.StringN(1, 20, 60).Draw(t, "name"), GenerateName: text.Draw(t, "generated"),
		UID: types.UID(text.Draw(t, "uid")), ResourceVersion: fmt.Sprint(rapid.Uint64Min(1).Draw(t, "version")),
		Generation: rapid.Int64().Draw(t, "generation"), Labels: texts.Draw(t, "labels"), Annotations: texts.Draw(t, "annotations"),
		Finalizers: rapid.SliceOfN(text, 0, 3).Draw(t, "finalizers"),
	}}
	if rapid.Bool().Draw(t, "was created") {
		p.CreationTimestamp = at("created")
	}
	if rapid.Bool().Draw(t, "is deleted") {
		deleted, grace := at("deleted"), rapid.Int64().Draw(t, "grace")
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deleted, &grace
	}
	for range rapid.IntRange(0, 3).Draw(t, "owners") {
		owner := metav1.OwnerReference{APIVersion: text.Draw(t, "of"), Kind: text.Draw(t, "kind"), Name: text.Draw(t, "owner"), UID: types.UID(text.Draw(t, "owner's uid"))}
		if rapid.Bool().Draw(t, "says whether it controls") {
			controls := rapid.Bool().Draw(t, "controls")
			owner.Controller = &controls
		}
		p.OwnerReferences = append(p.OwnerReferences, owner)
	}
	for range rapid.IntRange(0, 3).Draw(t, "managers") {
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: text.Draw(t, "manager"), Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)})
	}
	for range rapid.IntRange(0, 3).Draw(t, "containers") {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: text.Draw(t, "container"), Image: strings.Repeat(text.Draw(t, "image"), 10)})
	}
	p.Spec.NodeName, p.Status.Message = text.Draw(t, "node"), strings.Repeat(text.Draw(t, "message"), 20)
	return p
}

// An entry reads as the whole object does: what its body leaves out is given back. The object has no managedFields.
func TestEveryEntryReadsAsTheWholeObjectDoes(t *testing.T) {
	// A dictionary of other Pods, to be written anew with.
	trained := newArchive(podContent())
	for n := 0; trained.forms[wire.Protobuf].dict == nil; n++ {
		mustEntry(t, trained, realPod(n))
	}
	rapid.Check(t, func(t *rapid.T) {
		c := podContent()
		c.managed = rapid.Bool().Draw(t, "keeps managedFields")
		a := newArchive(c)
		encoding := rapid.SampledFrom([]wire.Encoding{wire.Protobuf, wire.JSON}).Draw(t, "encoding")
		var raw []byte
		var err error
		if p := drawPod(t); encoding == wire.Protobuf {
			raw, err = p.Marshal()
		} else {
			raw, err = kuberuntime.Encode(unstructured.UnstructuredJSONScheme, asUnstructured(t, p))
		}
		if err != nil {
			t.Fatal(err)
		}
		whole := new(corev1.Pod)
		if err := encoding.Decode(raw, whole); err != nil {
			t.Fatal(err)
		}
		if !c.managed {
			whole.ManagedFields = nil
		}
		var f frame
		if err := f.read(encoding, raw); err != nil {
			t.Fatal(err)
		}
		e, err := a.entry(&f)
		if err != nil {
			t.Fatal(err)
		}
		if !a.holds(e, &f) {
			t.Fatal("an entry is not said to be what it was made of")
		}
		clear(raw) // an entry keeps nothing of what it was read from
		other := &form{content: c, encoding: encoding, dict: trained.forms[wire.Protobuf].dict}
		for _, e := range []*entry{e, a.rewrite(e, other)} {
			have, err := e.decode()
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(have, object.Object(whole)) {
				t.Fatalf("have\n%#v\nwant\n%#v", have, whole)
			}
			if m := e.meta(); !reflect.DeepEqual(m, object.MetaOf(whole)) {
				t.Fatalf("have\n%#v\nwant\n%#v", m, object.MetaOf(whole))
			}
			notes, err := e.annotations()
			if err != nil || len(notes) != len(whole.Annotations) || len(notes) > 0 && !maps.Equal(notes, whole.Annotations) {
				t.Fatalf("annotations %q, %v; want %q", notes, err, whole.Annotations)
			}
		}
	})
}

func asUnstructured(t *rapid.T, p *corev1.Pod) *unstructured.Unstructured {
	p.APIVersion, p.Kind = "v1", "Pod"
	content, err := kuberuntime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// Only the metadata is looked into when an object comes. That the rest cannot be read is
// delivered to handlers that ask for it, and to no others.
func TestAnObjectWhoseContentCannotBeReadIsThereByItsMetadata(t *testing.T) {
	p := pod("a", "1")
	raw, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	raw = append(raw[:len(raw)-4], 0x12, 0x02, 0xff, 0xff) // for the spec and the status, which are empty
	var f frame
	if err := f.read(wire.Protobuf, raw); err != nil {
		t.Fatal(err)
	}
	e, err := newArchive(podContent()).entry(&f)
	if err != nil {
		t.Fatal(err)
	}
	item := Item[*corev1.Pod]{e}
	if _, err := item.Object(); err == nil || !strings.Contains(err.Error(), "reading ns/a from the cache") {
		t.Errorf("its content: %v", err)
	}
	if item.Key() != key("a") || item.Meta().UID != "a" {
		t.Errorf("its metadata: %+v", item.Meta())
	}
}

func TestAnnotationsAreReadWithoutDecoding(t *testing.T) {
	c, decoded := podContent(), 0
	c.new = func() object.Object { decoded++; return new(corev1.Pod) }
	item := Item[*corev1.Pod]{mustEntry(t, newArchive(c), realPod(3))}
	notes, err := item.Annotations()
	if err != nil || !maps.Equal(notes, realPod(3).Annotations) {
		t.Errorf("have %q, %v", notes, err)
	}
	notes["example.com/checksum"] = "mine"
	if notes, err := item.Annotations(); err != nil || notes["example.com/checksum"] == "mine" {
		t.Errorf("a caller's map is not its own: %q, %v", notes, err)
	}
	if decoded != 0 {
		t.Error("the object was decoded")
	}
	if _, err := (Item[*corev1.Pod]{}).Annotations(); err == nil {
		t.Error("an item that does not exist has annotations")
	}
}

func TestReadersShareOneObjectWhileSomebodyHoldsIt(t *testing.T) {
	c := podContent()
	defer c.recent.stop()
	item := Item[*corev1.Pod]{mustEntry(t, newArchive(c), realPod(1))}
	first, err := item.Object()
	if err != nil {
		t.Fatal(err)
	}
	c.recent.drop() // nobody but this test holds it
	runtime.GC()
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			if o, err := item.Object(); err != nil || o != first {
				t.Errorf("another object, or %v", err)
			}
		})
	}
	readers.Wait()
	runtime.KeepAlive(first)
}

func TestReadersThatDecodeAtTheSameTimeGetOneObject(t *testing.T) {
	c := podContent()
	defer c.recent.stop()
	a := newArchive(c)
	for n := range 50 {
		item := Item[*corev1.Pod]{mustEntry(t, a, realPod(n))}
		var readers sync.WaitGroup
		objects := make([]*corev1.Pod, 8)
		for r := range objects {
			readers.Go(func() {
				o, err := item.Object()
				if err != nil {
					t.Error(err)
				}
				objects[r] = o
			})
		}
		readers.Wait()
		for _, o := range objects {
			if o != objects[0] {
				t.Fatal("two objects for one state")
			}
		}
	}
}

// look reads an item and lets go of what it read.
//
//go:noinline
func look(t *testing.T, item Item[*corev1.Pod]) weak.Pointer[corev1.Pod] {
	t.Helper()
	o, err := item.Object()
	if err != nil {
		t.Fatal(err)
	}
	return weak.Make(o)
}

func TestAnObjectThatNobodyHoldsIsCollected(t *testing.T) {
	c := podContent()
	defer c.recent.stop()
	item := Item[*corev1.Pod]{mustEntry(t, newArchive(c), realPod(1))}
	object := look(t, item)
	c.recent.drop()
	runtime.GC()
	if object.Value() != nil {
		t.Error("it is in memory still")
	}
	if again := look(t, item); again.Value() == nil {
		t.Error("it cannot be read again")
	}
}

func TestObjectsThatWereReadAreKeptForAWhileAndThenLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := podContent()
		defer c.recent.stop()
		a := newArchive(c)
		object := look(t, Item[*corev1.Pod]{mustEntry(t, a, realPod(1))})
		runtime.GC()
		if object.Value() == nil {
			t.Error("it was let go at once")
		}
		time.Sleep(recentFor - time.Second)
		look(t, Item[*corev1.Pod]{mustEntry(t, a, realPod(2))}) // counts from here
		time.Sleep(2 * time.Second)
		synctest.Wait()
		runtime.GC()
		if object.Value() == nil {
			t.Error("it was let go while others were being read")
		}
		time.Sleep(recentFor)
		synctest.Wait()
		runtime.GC()
		if object.Value() != nil {
			t.Error("it is held still")
		}
		// Of many the last ones are kept.
		object = look(t, Item[*corev1.Pod]{mustEntry(t, a, realPod(3))})
		for n := range recentMost {
			look(t, Item[*corev1.Pod]{mustEntry(t, a, realPod(10+n))})
		}
		runtime.GC()
		if object.Value() != nil {
			t.Errorf("it is held after %d others were read", recentMost)
		}
	})
}
