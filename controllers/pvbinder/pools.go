// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// pools match the claims and the free volumes of each class. Matching is the one step that is
// serialized, by class: two claims must not choose the same volume. A volume that was chosen is
// assumed to be taken until the cache shows that it is. All of this can be lost in a restart: the
// volume is written with the resourceVersion that was read, so that a second choice of it is a
// conflict. The zero pools are ready for use, and safe for concurrent use.
type pools struct {
	mu      sync.Mutex
	classes map[string]*pool
}

// of returns the pool of a class. There are as many as classes have been named.
func (p *pools) of(class string) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.classes == nil {
		p.classes = map[string]*pool{}
	}
	if p.classes[class] == nil {
		p.classes[class] = &pool{assumed: map[string]types.UID{}, known: map[string]candidate{}, claims: map[object.Key]candidate{}, offers: map[object.Key]string{}}
	}
	return p.classes[class]
}

// pool is one class.
type pool struct {
	mu      sync.Mutex
	assumed map[string]types.UID     // volumes that a claim has chosen
	known   map[string]candidate     // what was read of the free volumes
	claims  map[object.Key]candidate // what was read of the claims that wait
	offers  map[object.Key]string    // the volume that a claim was enqueued for
}

// candidate is what matching compares of a volume or of a claim, so that the objects are decoded
// once for each version.
type candidate struct {
	version    object.Version
	created    time.Time
	size       int64
	access     []corev1.PersistentVolumeAccessMode
	mode       corev1.PersistentVolumeMode
	attributes string
	selector   labels.Selector // of a claim
	labels     labels.Labels   // of a volume
}

// satisfies reports whether a free volume of the class may be given to a claim.
func (v *candidate) satisfies(claim *candidate) bool {
	return v.size >= claim.size && v.mode == claim.mode && v.attributes == claim.attributes &&
		volumes.Allows(v.access, claim.access) && claim.selector.Matches(v.labels)
}

// choose returns the free volume that fits a claim best, and assumes that the claim takes it: of
// those with the fewest access modes the smallest, the first by name of several.
// Source of the order: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, findByClaim.
func (p *pool) choose(claim *corev1.PersistentVolumeClaim, free iter.Seq2[object.Key, cache.Item[*corev1.PersistentVolume]]) (*corev1.PersistentVolume, error) {
	wanted, err := candidateOfClaim(claim)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var best cache.Item[*corev1.PersistentVolume]
	var has candidate
	for key, item := range free {
		if taken, ok := p.assumed[key.Name]; ok && taken != claim.UID {
			continue
		}
		v, err := p.volume(key.Name, item)
		if err != nil {
			return nil, err
		}
		if v.satisfies(&wanted) && (!best.Exists() || closer(&v, key.Name, &has, best.Key().Name)) {
			best, has = item, v
		}
	}
	if !best.Exists() {
		return nil, nil
	}
	volume, err := best.Object()
	if err != nil {
		return nil, err
	}
	p.assumed[volume.Name] = claim.UID
	return volume, nil
}

// closer reports whether a volume fits better than another one.
func closer(a *candidate, aName string, b *candidate, bName string) bool {
	return cmp.Or(cmp.Compare(len(a.access), len(b.access)), cmp.Compare(a.size, b.size), cmp.Compare(aName, bName)) < 0
}

// offer returns the oldest of the claims that wait and that a free volume satisfies. The claim
// chooses for itself; withdraw returns the volume if it does not.
func (p *pool) offer(volume cache.Item[*corev1.PersistentVolume], waiting iter.Seq2[object.Key, cache.Item[*corev1.PersistentVolumeClaim]]) (object.Key, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := volume.Key().Name
	if _, taken := p.assumed[name]; taken {
		return object.Key{}, false, nil
	}
	v, err := p.volume(name, volume)
	if err != nil {
		return object.Key{}, false, err
	}
	var first object.Key
	var since time.Time
	for key, item := range waiting {
		if p.offers[key] != "" && p.offers[key] != name {
			continue
		}
		claim, err := p.claim(key, item)
		if err != nil {
			return object.Key{}, false, err
		}
		if v.satisfies(&claim) && (first.IsZero() || cmp.Or(claim.created.Compare(since), cmp.Compare(key.String(), first.String())) < 0) {
			first, since = key, claim.created
		}
	}
	if first.IsZero() {
		return object.Key{}, false, nil
	}
	p.offers[first] = name
	return first, true, nil
}

// withdraw ends the offers to a claim, which has run since, and returns the volumes.
func (p *pools) withdraw(claim object.Key) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.classes {
		pool.mu.Lock()
		if name := pool.offers[claim]; name != "" {
			names = append(names, name)
		}
		delete(pool.offers, claim)
		pool.mu.Unlock()
	}
	return names
}

// release ends the assumption that a claim takes a volume, because the write has failed.
func (p *pool) release(volume string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.assumed, volume)
}

// forgetVolume is called when the cache shows that a volume is not free any more.
func (p *pools) forgetVolume(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.classes {
		pool.mu.Lock()
		delete(pool.assumed, name)
		delete(pool.known, name)
		pool.mu.Unlock()
	}
}

// forgetClaim is called when a claim is gone or does not wait any more.
func (p *pools) forgetClaim(key object.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.classes {
		pool.mu.Lock()
		delete(pool.claims, key)
		pool.mu.Unlock()
	}
}

// volume returns what matching compares of a volume.
func (p *pool) volume(name string, item cache.Item[*corev1.PersistentVolume]) (candidate, error) {
	m := item.Meta()
	if known, ok := p.known[name]; ok && known.version == m.Version {
		return known, nil
	}
	volume, err := item.Object()
	if err != nil {
		return candidate{}, err
	}
	c := candidate{
		version: m.Version, size: size(volume.Spec.Capacity), access: slices.Clone(volume.Spec.AccessModes),
		mode: volumes.ModeOf(volume.Spec.VolumeMode), attributes: volumes.AttributesOf(volume.Spec.VolumeAttributesClassName), labels: m.Labels,
	}
	p.known[name] = c
	return c, nil
}

// claim returns what matching compares of a claim.
func (p *pool) claim(key object.Key, item cache.Item[*corev1.PersistentVolumeClaim]) (candidate, error) {
	version := item.Meta().Version
	if known, ok := p.claims[key]; ok && known.version == version {
		return known, nil
	}
	claim, err := item.Object()
	if err != nil {
		return candidate{}, err
	}
	c, err := candidateOfClaim(claim)
	if err != nil {
		return candidate{}, err
	}
	c.version = version
	p.claims[key] = c
	return c, nil
}

func candidateOfClaim(claim *corev1.PersistentVolumeClaim) (candidate, error) {
	selector := labels.Everything()
	if claim.Spec.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(claim.Spec.Selector); err != nil {
			return candidate{}, fmt.Errorf("reading the selector of claim %s: %w", object.KeyOf(claim), err)
		}
	}
	return candidate{
		created: claim.CreationTimestamp.Time, size: size(claim.Spec.Resources.Requests), access: claim.Spec.AccessModes,
		mode: volumes.ModeOf(claim.Spec.VolumeMode), attributes: volumes.AttributesOf(claim.Spec.VolumeAttributesClassName), selector: selector,
	}, nil
}
