/*
 * The escrow ledger, small enough to look at every history it can have: two instances that make any number of calls, a
 * bucket of two tokens that gains one a tick, and messages that are lost, late, doubled and out of order.
 *
 * Twin of src/ceiling/ledger.ts (the store) and src/lease (the holders); rules are numbered as in docs/design.md.
 *
 * What is claimed, in every state that can be reached:
 *   - T + O <= B;
 *   - a bucket that is charged for each admission at its very moment never goes below zero, which is to say that every
 *     window of length w admits at most B + R*w;
 *   - no token is created: what a wallet can spend, the store counts as outstanding;
 *   - nobody is denied for ever: once calls arrive again, one of the next three is granted a token.
 *
 * How small: at most two messages are late at any time (any number may come at once), and a reply is taken once. Lease
 * and age limit are one or two ticks; time goes on for ever, and so do calls, crashes and restarts. All clocks tick
 * together, so the store ends a lease as early as it may, without a grace. Any part of T may be granted, which covers
 * every rule of who gets how much.
 *
 * What is left out: fractions of a token (rule 12), clocks that run differently, lost and stale data, the witness of a
 * deleted key, outage modes, leases of different lengths in one bucket. Histories and random fleets look at those.
 *
 *   spin -a ledger.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m5000000
 *
 * -DCRASH       instances crash and come back as somebody else, again and again; messages of one of them may still come
 * -DPOLICY      a tighter policy (B' = 1) is published; any call may be the first of somebody who has heard of it
 * -DMUTANT=n    leaves out part of rule n / 10 (13: lease ends): the search must then find a violation
 * -DLEASE=1 -DBURST=1   a smaller model
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#ifndef BURST
#define BURST 2
#endif
#define TIGHT 1
/* Ticks. A lease ends at its holder so long after its call was sent, at the store so long after the call ran. */
#ifndef LEASE
#define LEASE 2
#endif
/* A call that carries anything to believe is refused when it is older. */
#define MAX_AGE 2
/* How much longer than its lease a record is kept. No less than what O takes to be earned again: see EXPIRED. */
#if MUTANT == 72
#define KEEP 0
#else
#define KEEP 2
#endif
#define RECORD_LIFE (LEASE + KEEP)

/* Holders 0 and 1 live; 2 is the one that crashed last. */
#ifdef CRASH
#define HOLDERS 3
#else
#define HOLDERS 2
#endif
/* Messages 0 and 1 may be late; 2 is a call that finds both of them under way, and arrives as soon as it is sent. */
#define LATE 2
#define PROMPT 2

mtype:kind = { NONE, CALL, REPLY };

typedef Record {
  bit on;
  unsigned o : 2;    /* its share of O */
  unsigned seq : 3;
  unsigned last : 2; /* granted by that call; once the lease has ended nobody can take it any more */
  unsigned left : 3; /* ticks until the record is dropped; its lease ends KEEP earlier */
};

typedef Holder {
  unsigned wallet : 3;
  unsigned left : 2;   /* ticks until its tokens are dead */
  bit flying;
  unsigned seq : 3;    /* of the call in flight */
  unsigned flight : 2; /* ticks that its grant would live */
  unsigned disown : 3; /* the lowest seq given up since the last reply taken */
#if MUTANT == 31
  bit fresh;
#endif
};

/* A call, or a reply to the call its holder has in flight: `tokens` is then what was granted. */
typedef Message {
  mtype:kind kind = NONE;
  unsigned h : 2;
  unsigned seq : 3;
  unsigned tokens : 2; /* what the holder says it holds */
  unsigned returned : 2;
  unsigned disown : 3;
  unsigned age : 2;
};

short T = BURST;
byte O = 0;
byte B = BURST;
Record rec[HOLDERS];
Holder hold[2];
Message slot[LATE + 1];

/* The bucket that is charged at once. */
short exact = BURST;
#ifdef POLICY
bit fence; /* the store has met the tighter policy */
bit news;  /* and meets it with this call */
/* The same from the first tightening on, begun with B', or with what was outstanding where that was more. */
short exactTight;
byte capTight;
#endif
#if MUTANT == 81
byte gap;
#endif

/* Who moves, and what with; 0 between two steps. */
byte h, c, granted, amount;
bit ran;
/* Scratch within a step. */
hidden byte i, j, v, who, round, ticks;
hidden byte undone, credit, used, top;

/* --- one state for all that behave alike -------------------------------------------------------------------------- */

#define BELIEVED(m) (slot[m].tokens > 0 || slot[m].returned > 0 || slot[m].disown > 0)
#define AWAITED(p, n) (p < 2 && hold[p].flying && hold[p].seq == n)
#define IS_FLIGHT(m, p) (slot[m].kind != NONE && slot[m].h == p && slot[m].seq == hold[p].seq)
#define LEASED(p) (rec[p].on && rec[p].left > KEEP)
/* No token is created: what can be spent is outstanding, as the store would find it now. */
#define BACKED(p) (hold[p].wallet == 0 || hold[p].left == 0 || LEASED(p) && hold[p].wallet <= rec[p].o)

inline clear(m) {
  slot[m].kind = NONE;
  slot[m].h = 0;
  slot[m].seq = 0;
  slot[m].tokens = 0;
  slot[m].returned = 0;
  slot[m].disown = 0;
  slot[m].age = 0
}

inline drop(r) {
  rec[r].on = 0;
  rec[r].o = 0;
  rec[r].seq = 0;
  rec[r].last = 0;
  rec[r].left = 0
}

inline swap(x, y) {
  v = x;
  x = y;
  y = v
}

inline swapMessages() {
  swap(slot[0].kind, slot[1].kind);
  swap(slot[0].h, slot[1].h);
  swap(slot[0].seq, slot[1].seq);
  swap(slot[0].tokens, slot[1].tokens);
  swap(slot[0].returned, slot[1].returned);
  swap(slot[0].disown, slot[1].disown);
  swap(slot[0].age, slot[1].age)
}

inline swapHolders() {
  swap(rec[0].on, rec[1].on);
  swap(rec[0].o, rec[1].o);
  swap(rec[0].seq, rec[1].seq);
  swap(rec[0].last, rec[1].last);
  swap(rec[0].left, rec[1].left);
  swap(hold[0].wallet, hold[1].wallet);
  swap(hold[0].left, hold[1].left);
  swap(hold[0].flying, hold[1].flying);
  swap(hold[0].seq, hold[1].seq);
  swap(hold[0].flight, hold[1].flight);
  swap(hold[0].disown, hold[1].disown);
#if MUTANT == 31
  swap(hold[0].fresh, hold[1].fresh);
#endif
  for (j : 0 .. LATE - 1) {
    if
    :: slot[j].kind != NONE && slot[j].h < 2 -> slot[j].h = 1 - slot[j].h
    :: else
    fi
  }
}

/* Any order of two holders, and of two messages, will do. */
#define WEIGHT(p) (((((((rec[p].left * 4 + rec[p].o) * 4 + rec[p].last) * 8 + hold[p].wallet) * 4 + hold[p].left) * 4 \
  + hold[p].flight) * 8 + hold[p].disown) * 2 + hold[p].flying)
#define HEFT(m) (((((slot[m].h * 4 + slot[m].kind) * 8 + slot[m].seq) * 4 + slot[m].tokens) * 4 + slot[m].returned) * 4 \
  + slot[m].age)

inline forgetReplies() {
#if MUTANT != 41
  for (j : 0 .. LATE - 1) {
    if
    :: slot[j].kind == REPLY && slot[j].h == h -> clear(j)
    :: else
    fi
  }
#endif
  skip
}

/* A call is given up: what it granted is disowned with the next one, and its reply is ignored for ever (rule 4). */
inline giveUp(p) {
  if
  :: hold[p].disown == 0 -> hold[p].disown = hold[p].seq
  :: else
  fi;
  hold[p].flying = 0;
  hold[p].seq = 0;
  hold[p].flight = 0
}

/* What the next rests on is in place. */
#define NUMBERED (MUTANT / 10 != 2 && MUTANT / 10 != 3 && MUTANT / 10 != 4)
#define AGED (MUTANT / 10 != 7 && MUTANT / 10 != 11)

/*
 * What can make no difference any more is forgotten, which rules 2, 4, 7 and 11 allow:
 *   - a call that would be answered from its record for as long as it is believed, with nobody waiting for the answer;
 *   - a flight none of whose messages are left, which can only be given up;
 *   - the last grant in a record that can neither be repeated nor taken back.
 */
inline forgetTheDead() {
#if NUMBERED && AGED
  for (j : 0 .. LATE - 1) {
    who = slot[j].h;
    if
    :: slot[j].kind == CALL && BELIEVED(j) && rec[who].left > MAX_AGE - slot[j].age &&
        (slot[j].seq < rec[who].seq || slot[j].seq == rec[who].seq && !AWAITED(who, slot[j].seq)) -> clear(j)
    :: else
    fi
  }
#endif
  for (i : 0 .. 1) {
#if MUTANT != 41
    if
    :: hold[i].flying && !IS_FLIGHT(0, i) && !IS_FLIGHT(1, i) -> giveUp(i)
    :: else
    fi;
#endif
#if NUMBERED
    if
    :: !(hold[i].flying && hold[i].seq == rec[i].seq) &&
        !(hold[i].disown > 0 && hold[i].disown <= rec[i].seq) -> rec[i].last = 0
    :: else
    fi;
#endif
    skip
  }
#ifdef CRASH
#if NUMBERED
  if
  :: !(slot[0].kind != NONE && slot[0].h == 2) && !(slot[1].kind != NONE && slot[1].h == 2) -> rec[2].last = 0
  :: else
  fi;
#endif
#endif
  skip
}

/* Which numbers of this holder are in use, as bits. */
inline numbersOf(p) {
  used = 1 << rec[p].seq;
  if
  :: p < 2 -> used = used | (1 << hold[p].seq) | (1 << hold[p].disown)
  :: else
  fi;
  for (j : 0 .. LATE - 1) {
    if
    :: slot[j].kind != NONE && slot[j].h == p -> used = used | (1 << slot[j].seq) | (1 << slot[j].disown)
    :: else
    fi
  }
}

inline lower(number) {
  if
  :: number > v -> number--
  :: else
  fi
}

/*
 * Of a holder's numbers only the order matters: those in use are renamed 1, 2, ... so that any number of calls makes a
 * finite number of states.
 */
inline renumber() {
  for (i : 0 .. HOLDERS - 1) {
    numbersOf(i);
    v = 7;
    do
    :: v == 0 -> break
    :: v > 0 ->
      if
      :: (used >> v) & 1
      :: else ->
        lower(rec[i].seq);
        if
        :: i < 2 ->
          lower(hold[i].seq);
          lower(hold[i].disown)
        :: else
        fi;
        for (j : 0 .. LATE - 1) {
          if
          :: slot[j].kind != NONE && slot[j].h == i ->
            lower(slot[j].seq);
            lower(slot[j].disown)
          :: else
          fi
        }
      fi;
      v--
    od
  }
}

inline tidy() {
  forgetTheDead();
  if
  :: WEIGHT(0) < WEIGHT(1) -> swapHolders()
  :: else
  fi;
  if
  :: slot[0].kind == NONE && slot[1].kind != NONE -> swapMessages()
  :: slot[0].kind != NONE && slot[1].kind != NONE && HEFT(0) < HEFT(1) -> swapMessages()
  :: else
  fi;
  renumber();
  skip
}

/* --- time --------------------------------------------------------------------------------------------------------- */

/*
 * The store works out what has passed when it is called. As O does not change between two calls, to refill tick by tick
 * under the O of the last call is the same as rule 8: refill first, under the old O, and then lease ends.
 */
inline refill() {
  if
#if MUTANT == 81
  :: gap < 7 -> gap++
#elif MUTANT == 11
  :: T < B -> T++
#else
  :: T < B - O -> T++
#endif
  :: else
  fi
}

inline countDown(ticks) {
  if
  :: ticks > 0 -> ticks--
  :: else
  fi
}

inline tick() {
  refill();
  if
  :: exact < BURST -> exact++
  :: else
  fi;
#ifdef POLICY
  if
  :: exactTight < capTight -> exactTight++
  :: else
  fi;
#endif
  for (i : 0 .. HOLDERS - 1) {
    countDown(rec[i].left)
  }
  for (i : 0 .. 1) {
    countDown(hold[i].left);
    countDown(hold[i].flight);
#if MUTANT != 51 && MUTANT != 61
    /* Dead tokens are dropped when one is to be spent, or others put in: nobody sees them in between (rules 5 and 6). */
    if
    :: hold[i].left == 0 -> hold[i].wallet = 0
    :: else
    fi
#endif
  }
  for (i : 0 .. LATE - 1) {
    if
    :: slot[i].kind == CALL && BELIEVED(i) ->
      if
      :: slot[i].age < MAX_AGE -> slot[i].age++
#if MUTANT != 71
      /* Refused for its age (rule 7): as if it were lost, and its holder may give it up. */
      :: else -> clear(i)
#else
      :: else
#endif
      fi
    :: else
    fi
  }
}

/* --- the store ---------------------------------------------------------------------------------------------------- */


inline endLeases() {
  for (i : 0 .. HOLDERS - 1) {
    if
#if MUTANT == 132
    :: rec[i].on && rec[i].left == 0 && rec[i].o == 0 -> drop(i)
#else
    :: rec[i].on && rec[i].left <= KEEP ->
      O = O - rec[i].o;
#if MUTANT == 131
      T = T + rec[i].o;
#endif
      rec[i].o = 0;
#if MUTANT != 45
      rec[i].last = 0;
#endif
      if
      :: rec[i].left == 0 -> drop(i)
      :: else
      fi
#endif
    :: else
    fi
  }
}

inline advance() {
  endLeases();
#if MUTANT == 81
  T = (T + gap < B - O -> T + gap : B - O);
  gap = 0;
#endif
  skip
}

#ifdef POLICY
/* The first call of somebody who has heard of the tighter policy, which may be any. */
inline tighten() {
  fence = 1;
  B = TIGHT;
  if
  :: T > B - O -> T = B - O
  :: else
  fi;
  if
  :: capTight == 0 ->
    capTight = (O > TIGHT -> O : TIGHT);
    exactTight = capTight
  :: else
  fi
}
#endif

/* What a holder that the store knows says of itself. */
inline report() {
  undone = 0;
  if
#if MUTANT == 42
  :: slot[c].tokens == 0 ->
#elif MUTANT == 43
  :: slot[c].disown > 0 ->
#else
  :: slot[c].disown > 0 && rec[h].seq >= slot[c].disown ->
#endif
#if MUTANT == 45
    undone = rec[h].last;
    O = (O > undone -> O - undone : 0);
    rec[h].o = (rec[h].o > undone -> rec[h].o - undone : 0);
#else
    undone = (rec[h].last < rec[h].o -> rec[h].last : rec[h].o);
    O = O - undone;
    rec[h].o = rec[h].o - undone;
#endif
    T = T + undone
  :: else
  fi;
  credit = (rec[h].o > slot[c].tokens -> rec[h].o - slot[c].tokens : 0);
  if
  :: slot[c].returned < credit -> credit = slot[c].returned
  :: else
  fi;
  T = T + credit;
  O = O + slot[c].tokens - rec[h].o;
  rec[h].o = slot[c].tokens
}

/*
 * The key's expiry (rule 11): every record has ended, and what is outstanding would have been earned again, which KEEP
 * is long enough for. The bucket is then a copy of the untouched one, and full.
 */
#if MUTANT == 111
#define EXPIRED(r) (!rec[r].on || rec[r].left <= RECORD_LIFE - BURST)
#else
#define EXPIRED(r) (!rec[r].on || rec[r].left == 0)
#endif
#ifdef CRASH
#define KEY_EXPIRED ((rec[0].on || rec[1].on || rec[2].on) && EXPIRED(0) && EXPIRED(1) && EXPIRED(2))
#else
#define KEY_EXPIRED ((rec[0].on || rec[1].on) && EXPIRED(0) && EXPIRED(1))
#endif
inline expire() {
  for (i : 0 .. HOLDERS - 1) {
    drop(i)
  }
#if defined(POLICY) && MUTANT == 91
  fence = 0;
  B = BURST;
#endif
  O = 0;
  T = B
}

/* A call that changes nothing, and whose answer nobody takes, is as good as lost. */
#if MUTANT == 22
#define STALE(m) false
#else
#define STALE(m) (rec[slot[m].h].on && slot[m].seq < rec[slot[m].h].seq)
#endif
/* Sent under a lease that the store has ended since: what it holds and gives back counts as spent (rule 6). */
#if MUTANT == 62
#define DEAD(m) false
#else
#define DEAD(m) (rec[slot[m].h].on && slot[m].seq > rec[slot[m].h].seq && (slot[m].tokens > 0 || slot[m].returned > 0) \
  && rec[slot[m].h].left <= KEEP && slot[m].age > KEEP - rec[slot[m].h].left)
#endif

/* Runs call c up to what it grants. `ran`: it is not a repeat. */
inline execute() {
  h = slot[c].h;
  granted = 0;
  ran = 0;
  if
#if MUTANT != 21
  /* A repeat is answered from its record, and changes nothing (rules 2 and 10). */
  :: rec[h].on && slot[c].seq == rec[h].seq ->
    granted = rec[h].last
#if MUTANT == 101
    ;
    refill()
#endif
#endif
  :: else ->
    ran = 1;
    advance();
#ifdef POLICY
    if
    :: news -> tighten()
    :: else
    fi;
#endif
    if
    :: rec[h].on -> report()
    :: else ->
      rec[h].on = 1;
      rec[h].o = slot[c].tokens;
      O = O + slot[c].tokens
    fi;
    rec[h].seq = slot[c].seq;
    rec[h].left = RECORD_LIFE;
    if
    :: T > B - O -> T = B - O
    :: else
    fi
  fi
}

inline grant() {
  T = T - granted;
  O = O + granted;
  rec[h].o = rec[h].o + granted;
  rec[h].last = granted;
  /* A tightening may leave more outstanding than the new burst: nothing is left then. */
#ifdef POLICY
  assert(T + O <= B || fence && T <= 0)
#else
  assert(T + O <= B)
#endif
}

/* --- the holders -------------------------------------------------------------------------------------------------- */

/* Holder h takes the reply to its call: live tokens are extended, dead ones dropped (rule 6). */
inline deposit() {
  forgetReplies();
#if MUTANT == 52
  hold[h].flight = LEASE;
#endif
#if MUTANT == 41
  if
  :: !hold[h].flying -> hold[h].flight = 1
  :: else
  fi;
#endif
  if
  :: hold[h].flight > 0 && granted + hold[h].wallet > 0 ->
    if
    :: hold[h].left < hold[h].flight -> hold[h].left = hold[h].flight
    :: else
    fi;
    hold[h].wallet = hold[h].wallet + granted
  :: else
  fi;
  hold[h].flying = 0;
  hold[h].seq = 0;
  hold[h].flight = 0;
  hold[h].disown = 0;
  granted = 0
}

/* What is returned has left the wallet, for good. */
#define FREE_SLOT (slot[0].kind == NONE -> 0 : (slot[1].kind == NONE -> 1 : PROMPT))
inline send() {
#if MUTANT == 51 || MUTANT == 61
  /* A call says of live tokens only. */
  if
  :: hold[h].left == 0 -> hold[h].wallet = 0
  :: else
  fi;
#endif
  numbersOf(h);
  top = 7;
  do
  :: (used >> top) & 1 -> break
  :: else -> top--
  od;
#if MUTANT == 23
  if
  :: hold[h].wallet == 0 && hold[h].disown == 0 -> top = 0
  :: else
  fi;
#endif
#if MUTANT == 31
  if
  :: hold[h].fresh -> top = 0
  :: else
  fi;
  hold[h].fresh = 0;
#endif
  c = FREE_SLOT;
  hold[h].seq = top + 1;
  hold[h].flying = 1;
  hold[h].flight = LEASE;
  slot[c].tokens = hold[h].wallet - amount;
#if MUTANT != 44
  hold[h].wallet = hold[h].wallet - amount;
#endif
  if
  :: hold[h].wallet == 0 -> hold[h].left = 0
  :: else
  fi;
  slot[c].kind = CALL;
  slot[c].h = h;
  slot[c].seq = hold[h].seq;
  slot[c].returned = amount;
  slot[c].disown = hold[h].disown
}

#if MUTANT == 51
#define CAN_SPEND(p) (hold[p].wallet > 0)
#else
#define CAN_SPEND(p) (hold[p].wallet > 0 && hold[p].left > 0)
#endif
inline spend() {
  hold[h].wallet--;
  if
  :: hold[h].wallet == 0 -> hold[h].left = 0
  :: else
  fi;
  exact--;
  assert(exact >= 0);
#ifdef POLICY
  if
  :: capTight > 0 ->
    exactTight--;
    assert(exactTight >= 0)
  :: else
  fi
#endif
}

#ifdef CRASH
/* Whoever comes back holds nothing, and is somebody else to the store (rule 3). */
#define CAN_CRASH (!rec[2].on && !(slot[0].kind != NONE && slot[0].h == 2) && !(slot[1].kind != NONE && slot[1].h == 2))
inline crash() {
#if MUTANT == 31
  hold[h].fresh = 1;
#else
  rec[2].on = rec[h].on;
  rec[2].o = rec[h].o;
  rec[2].seq = rec[h].seq;
  rec[2].last = rec[h].last;
  rec[2].left = rec[h].left;
  drop(h);
#endif
  for (j : 0 .. LATE - 1) {
    if
    :: slot[j].kind == REPLY && slot[j].h == h -> clear(j)
#if MUTANT != 31
    :: slot[j].kind == CALL && slot[j].h == h -> slot[j].h = 2
#endif
    :: else
    fi
  }
  hold[h].wallet = 0;
  hold[h].left = 0;
  hold[h].flying = 0;
  hold[h].seq = 0;
  hold[h].flight = 0;
  hold[h].disown = 0
}
#endif

/* --- the fleet ---------------------------------------------------------------------------------------------------- */

inline reply(to) {
  v = slot[c].seq;
  clear(to);
  slot[to].kind = REPLY;
  slot[to].h = h;
  slot[to].seq = v;
  slot[to].tokens = granted
}

/* Call c arrives, maybe not for the last time; its reply is lost, taken at once, or on its way. */
inline arrive() {
#ifdef POLICY
  if
  :: !fence -> news = 1
  :: true
  fi;
#endif
  d_step { execute(); skip };
#ifdef POLICY
  news = 0;
#endif
  if
  :: ran ->
    if
    :: granted = 0
    :: T > 0 -> granted = 1
    :: T > 1 -> granted = 2
    fi;
    d_step { grant() }
  :: else
  fi;
  if
  :: true
#if MUTANT == 41
  :: h < 2 -> d_step { deposit() }
  :: h < 2 && c < LATE -> d_step { reply(c) }
#else
  :: AWAITED(h, slot[c].seq) -> d_step { deposit() }
  :: AWAITED(h, slot[c].seq) && c < LATE -> d_step { reply(c) }
  :: AWAITED(h, slot[c].seq) && c < LATE && slot[1 - c].kind == NONE -> d_step { reply(1 - c) }
#endif
  fi
}

/*
 * From here on calls arrive at once and their replies come back: what is on its way is lost, and whoever waits for it
 * gives it up. Holder h, with nothing in hand, must be granted a token by one of its next three calls.
 */
inline endOfFaults() {
  clear(0);
  clear(1);
  if
  :: hold[h].flying -> giveUp(h)
  :: else
  fi;
  amount = 0;
  granted = 0;
  for (round : 1 .. 3) {
    for (ticks : 1 .. RECORD_LIFE) {
      tick()
    }
    renumber();
    if
    :: granted == 0 ->
      send();
      if
      :: !STALE(c) ->
        execute();
        granted = (!ran || T <= 0 -> 0 : 1);
        if
        :: ran -> T = T - granted; O = O + granted; rec[h].o = rec[h].o + granted; rec[h].last = granted
        :: else
        fi
      :: else
      fi;
      clear(c);
      giveUp(h)
    :: else
    fi
  }
  assert(granted > 0);
  nothing();
  skip
}

/* All ends are one. */
inline nothing() {
  for (i : 0 .. HOLDERS - 1) {
    drop(i)
  }
  for (i : 0 .. 1) {
    hold[i].wallet = 0;
    hold[i].left = 0;
    hold[i].flying = 0;
    hold[i].seq = 0;
    hold[i].flight = 0;
#if MUTANT == 31
    hold[i].fresh = 0;
#endif
    hold[i].disown = 0
  }
  T = 0;
  O = 0;
  B = 0;
  exact = 0;
#ifdef POLICY
  fence = 0;
  exactTight = 0;
  capTight = 0;
#endif
#if MUTANT == 81
  gap = 0;
#endif
  h = 0;
  c = 0;
  granted = 0;
  ran = 0
}

active proctype fleet() {
  do
  :: d_step { tick(); tidy(); assert(BACKED(0) && BACKED(1)) }

  :: d_step { KEY_EXPIRED -> expire(); tidy(); i = 0 }

  /* A holder moves. */
  :: atomic {
      if
      :: h = 0
      :: h = 1
      fi;
      if
      :: CAN_SPEND(h) -> d_step { spend() }
      :: !hold[h].flying ->
        if
        :: amount = 0
        :: hold[h].wallet > 0 -> amount = 1
        :: hold[h].wallet > 1 -> amount = 2
        fi;
        d_step { send(); amount = 0 };
        if
        :: c == PROMPT ->
          arrive();
          clear(PROMPT)
        :: else
        fi
      :: hold[h].flying -> d_step { forgetReplies(); giveUp(h) }
#ifdef CRASH
      :: CAN_CRASH -> d_step { crash(); skip }
#endif
      fi;
      d_step { tidy(); h = 0; c = 0; ran = 0; granted = 0 }
    }

  /* A message arrives, or is lost. */
  :: atomic {
      if
      :: slot[0].kind != NONE
      :: slot[1].kind != NONE -> c = 1
      fi;
      if
      :: clear(c)
      :: slot[c].kind == REPLY -> d_step { h = slot[c].h; granted = slot[c].tokens; clear(c); deposit() }
      :: slot[c].kind == CALL && !STALE(c) && !DEAD(c) -> arrive()
      fi;
      d_step { tidy(); assert(BACKED(0) && BACKED(1)); h = 0; c = 0; ran = 0; granted = 0 }
    }

  :: d_step { endOfFaults() } -> break
  :: d_step { h = 1; endOfFaults() } -> break
  od
}
