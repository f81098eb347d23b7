// Package fair shares a server out among its clients: memory, the processor's time, and the places of calls that change
// something. Hosts get alike, whatever each asks for, and of each host its connections.
//
// It knows nothing of calls and connections. Whoever serves them asks it three things: for memory before a call is read
// or carried out (Account), for a turn before it runs (Turns), and for a place if it changes something (Changes).
package fair
