import{d as e}from"./chunk-V5KZCUB3.js";function o(r){return e("main",{class:"page","aria-label":"Threads",children:e("h1",{children:"Threads"})})}export{o as ThreadsScreen};
