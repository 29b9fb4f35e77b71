// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SignatureHeader is the header that a webhook's signature is in.
const SignatureHeader = "X-Setpoint-Signature"

// Sign returns the value of SignatureHeader for a body: t=<seconds since 1970>,v1=<hex>,
// where hex is the HMAC-SHA256 of the seconds, a full stop and the body.
func Sign(key []byte, at time.Time, body []byte) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	return "t=" + seconds + ",v1=" + hex.EncodeToString(mac(key, seconds, body))
}

func mac(key []byte, seconds string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(seconds + ".")) // writing to a hash never fails
	_, _ = h.Write(body)
	return h.Sum(nil)
}

// ErrSignature is wrapped by the errors of Verify.
var ErrSignature = errors.New("the signature is not right")

// Verify reports whether a body was signed with a key, and not longer ago than tolerance,
// nor so far in the future. It is for receivers. Header is the value of SignatureHeader; it
// may hold several v1, of which one has to be right, so that keys can be changed.
func Verify(key []byte, header string, body []byte, now time.Time, tolerance time.Duration) error {
	seconds := ""
	var given [][]byte
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			if seconds != "" {
				return fmt.Errorf("%w: it has two times", ErrSignature)
			}
			seconds = value
		case "v1":
			sum, err := hex.DecodeString(value)
			if err != nil {
				return fmt.Errorf("%w: v1 is not hexadecimal", ErrSignature)
			}
			given = append(given, sum)
		}
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: it has no time", ErrSignature)
	}
	want := mac(key, seconds, body)
	right := false
	for _, sum := range given {
		right = hmac.Equal(sum, want) || right
	}
	if !right {
		return fmt.Errorf("%w: it was made with another key or for another body", ErrSignature)
	}
	// Of far away times the difference does not fit, and is the largest that does.
	if age := now.Sub(time.Unix(at, 0)); age > tolerance || age < -tolerance {
		return fmt.Errorf("%w: it is from %v ago; the longest allowed is %v", ErrSignature, age.Round(time.Second), tolerance)
	}
	return nil
}
