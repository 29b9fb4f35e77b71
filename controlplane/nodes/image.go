// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// pullAttempt is how long a failing pull of an image shows as ErrImagePull before it
// becomes ImagePullBackOff.
const pullAttempt = time.Second

// maxFailedPulls bounds the value of ImagePull: the sum over the attempts is computed at
// each look.
const maxFailedPulls = 1000

// imagePull is what the annotation ImagePull states; its zero value is to go by the names
// of the images.
type imagePull struct {
	ok     bool
	errors bool
	first  int // so many attempts fail, and the next one does not
}

func parseImagePull(value string) (imagePull, error) {
	switch value {
	case "ok":
		return imagePull{ok: true}, nil
	case "error":
		return imagePull{errors: true}, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maxFailedPulls {
		return imagePull{}, fmt.Errorf(`%q is neither "error" nor "ok", nor a number of attempts from 1 to %d`, value, maxFailedPulls)
	}
	return imagePull{first: n}, nil
}

// pullable reports whether the image of a container can be pulled at all: not from the
// top-level domain "invalid", which no registry can have (RFC 2606), and not with
// the tag "pull-error". The annotation ImagePull overrules the name.
func (b behavior) pullable(image string) bool {
	switch {
	case b.imagePull.ok || b.imagePull.first > 0:
		return true
	case b.imagePull.errors:
		return false
	}
	host, _, hasHost := strings.Cut(image, "/")
	if hasHost {
		host, _, _ = strings.Cut(host, ":")
		if host == "invalid" || strings.HasSuffix(host, ".invalid") {
			return false
		}
	}
	return !strings.HasSuffix(image, ":pull-error")
}

// pull reports whether the image is there, and says so in s if it is not.
func (p *pass) pull(c *corev1.Container, s *corev1.ContainerStatus) bool {
	if p.does.pullable(c.Image) && p.does.imagePull.first == 0 {
		return true
	}
	s.Image, s.Ready, s.Started = c.Image, false, new(false)
	begun := p.memo.first("pull/"+c.Name, p.now)
	if !p.does.pullable(c.Image) {
		// It stays in the back-off: a kubelet tries again and again, which says
		// nothing more and costs two writes each time.
		if !backsOffPull(s) && p.due(begun.Add(pullAttempt)) {
			p.pullFails(c, s)
		} else {
			p.pullBacksOff(c, s)
		}
		return false
	}

	for attempt := range p.does.imagePull.first {
		if p.due(begun.Add(pullAttempt)) {
			p.pullFails(c, s)
			return false
		}
		begun = begun.Add(pullAttempt).Add(p.waitFor(int32(attempt) + 1))
		if p.due(begun) {
			p.pullBacksOff(c, s)
			return false
		}
	}
	return true
}

func (p *pass) pullFails(c *corev1.Container, s *corev1.ContainerStatus) {
	if p.wait(s, "ErrImagePull", pullError(c)) {
		p.warn("Failed", fmt.Sprintf("Failed to pull image %q: %s", c.Image, pullError(c)))
		p.warn("Failed", "Error: ErrImagePull")
	}
}

func (p *pass) pullBacksOff(c *corev1.Container, s *corev1.ContainerStatus) {
	message := fmt.Sprintf("Back-off pulling image %q", c.Image)
	if p.wait(s, "ImagePullBackOff", message+": ErrImagePull: "+pullError(c)) {
		p.out.events = append(p.out.events, podEvent{corev1.EventTypeNormal, "BackOff", message})
		p.warn("Failed", "Error: ImagePullBackOff")
	}
}

func pullError(c *corev1.Container) string {
	return fmt.Sprintf("simulated registry: image %q not found", c.Image)
}

func backsOffPull(s *corev1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == "ImagePullBackOff"
}
